"""Ways to train that stand on collectives: uneven inputs (``join``), communication hooks (``ddp_comm_hooks``)."""
