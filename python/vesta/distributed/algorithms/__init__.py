"""Training methods built on collectives: uneven inputs (``join``), communication hooks (``ddp_comm_hooks``)."""
