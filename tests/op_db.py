"""The table of ops: one row per op, from which ``tests/python/test_op_db*.py`` generate the tests.

To test a new pointwise op, add one line: its name, NumPy's function and the domain to draw from. What the fields mean
stands in ``op_db_row.py``; samples and references that need more than a line live in ``op_db_samples.py``.
"""
from __future__ import annotations

import numpy as np
from scipy import special

import op_db_samples as s
from op_db_row import Bad, Row, binary, call, comparison, factory, random, reduction, structured, unary, view

F = "nn.functional"
INTEGRAL = "bui"

OPS: list[Row] = [
    # ---- unary ----
    unary("neg", np.negative, result="same", operator="neg", ulp=0.5),
    unary("abs", np.abs, result="real", kinks=(0,), operator="abs", ulp=1),
    unary("exp", np.exp, (-5, 5), dtypes="buihfc", ulp=1),
    unary("log", np.log, (0.1, 20), dtypes="buihfc", ulp=1),
    unary("tanh", np.tanh, dtypes="buihfc", ulp=1),
    unary("sigmoid", s.sigmoid, (-9, 9), dtypes="buihfc"),
    unary("relu", s.relu, kinks=(0,), dtypes="uihf", result="same", out=False, ulp=0.5),
    unary("sqrt", np.sqrt, (0.1, 9), dtypes="buihfc", ulp=0.5),
    unary("square", np.square, dtypes="buihfc", result="square", ulp=0.5),
    unary("sin", np.sin, (-10, 10), dtypes="buihfc", ulp=1),
    unary("cos", np.cos, (-10, 10), dtypes="buihfc", ulp=1),
    unary("erf", special.erf, dtypes="buihf", ulp=1),
    unary("reciprocal", np.reciprocal, (0.2, 5), dtypes="buihfc", ulp=0.5),
    unary("sign", s.sign, dtypes="buihf", result="same", kinks=(0,), ulp=0.5),
    unary("floor", np.floor, dtypes="uihf", result="same", kinks=range(-5, 6), ulp=0.5),
    unary("logical_not", np.logical_not, dtypes="buihfc", result="bool", grad=False),
    unary("isnan", np.isnan, dtypes="buihfc", result="bool", grad=False, inplace=False, out=False),
    unary("bitwise_not", np.bitwise_not, dtypes="bui", result="same", grad=False, operator="invert"),
    # ---- unary with parameters ----
    unary("leaky_relu", s.leaky_relu, kinks=(0,), params=(call(), call(0.2)), dtypes="hf", where=F, method=False,
          inplace=False, out=False, ulp=1),
    unary("gelu", s.gelu, (-6, 6), params=(call(), call(approximate="tanh")), dtypes="hf", where=F, method=False,
          inplace=False, out=False, extremes=False, errors=(
              Bad(lambda v: v.nn.functional.gelu(v.ones(2), approximate="exact"), RuntimeError, "exact"),)),
    unary("clamp", s.clamp, kinks=(-1, 0, 1, 2), params=(call(-1, 2), call(min=0), call(max=1)), dtypes="uihf", may="b",
          result="same", ulp=0.5, errors=(Bad(lambda v: v.clamp(v.ones(2)), RuntimeError, "min"),)),
    # ---- binary ----
    binary("add", s.add, params=(call(alpha=2),), operator="add", ulp=0.5),
    binary("sub", s.sub, params=(call(alpha=2),), operator="sub", dtypes="uihfc", ulp=0.5),
    binary("mul", np.multiply, operator="mul", ulp=0.5),
    binary("div", s.div, other=(0.5, 3), result="float", operator="truediv", ulp=0.5),
    binary("remainder", np.remainder, (-9, 9), (1, 4), dtypes="uihf", operator="mod", smooth=((3.1, 3.3), (1.2, 1.4)),
           extremes=False),
    binary("pow", s.power, (0.2, 3), (-2, 3), dtypes="uihfc", operator="pow"),
    binary("maximum", np.maximum, kinks=(0,), dtypes="buihf", scalars=(), inplace=False, ulp=0.5),
    binary("minimum", np.minimum, kinks=(0,), dtypes="buihf", scalars=(), inplace=False, ulp=0.5),
    binary("bitwise_and", np.bitwise_and, dtypes="bui", grad=False, operator="and_"),
    binary("bitwise_or", np.bitwise_or, dtypes="bui", grad=False, operator="or_"),
    binary("bitwise_xor", np.bitwise_xor, dtypes="bui", grad=False, operator="xor"),
    comparison("eq", np.equal, operator="eq"),
    comparison("ne", np.not_equal, operator="ne"),
    comparison("lt", np.less, dtypes="buihf", operator="lt"),
    comparison("le", np.less_equal, dtypes="buihf", operator="le"),
    comparison("gt", np.greater, dtypes="buihf", operator="gt"),
    comparison("ge", np.greater_equal, dtypes="buihf", operator="ge"),
    comparison("logical_and", np.logical_and, scalars=()),
    comparison("logical_or", np.logical_or, scalars=()),
    # ---- reductions ----
    reduction("sum", s.over(np.sum), result="sum"),
    reduction("mean", s.over(np.mean), dtypes="hfc"),
    reduction("amax", s.over(np.amax), dtypes="buihf", empty=False, distinct=True, bitwise=True),
    reduction("amin", s.over(np.amin), dtypes="buihf", empty=False, distinct=True, bitwise=True),
    reduction("max", s.extremum(np.amax, np.argmax), dtypes="uihf", may="b", result=("same", "int64"), empty=False,
              distinct=True, dims=False, bitwise=True,
              errors=(Bad(lambda v: v.max(v.zeros(0)), RuntimeError, "max"),
                      Bad(lambda v: v.max(v.zeros(2, 0), 1), IndexError, "max"))),
    reduction("min", s.extremum(np.amin, np.argmin), dtypes="uihf", may="b", result=("same", "int64"), empty=False,
              distinct=True, dims=False, bitwise=True,
              errors=(Bad(lambda v: v.min(v.zeros(0)), RuntimeError, "min"),)),
    reduction("argmax", s.over(np.argmax), dtypes="uihf", may="b", result="int64", grad=False, empty=False,
              distinct=True, dims=False, bitwise=True,
              errors=(Bad(lambda v: v.argmax(v.zeros(0)), IndexError, "argmax"),)),
    reduction("argmin", s.over(np.argmin), dtypes="uihf", may="b", result="int64", grad=False, empty=False,
              distinct=True, dims=False, bitwise=True,
              errors=(Bad(lambda v: v.argmin(v.zeros(0)), IndexError, "argmin"),)),
    reduction("all", s.over(np.all), result="flags", grad=False, bitwise=True),
    reduction("any", s.over(np.any), result="flags", grad=False, bitwise=True),
]
