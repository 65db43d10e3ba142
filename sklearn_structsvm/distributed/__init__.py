"""The same problems with examples on many machines.

What is general: `dask_workers` tells all parts and sums their answers, `rows` and
`sequences` check the data where they are, `problem` binds them, and `examples` is a part.
`blocks` and `sums` need no more: a part gets weights and returns one sum, and one that is
lost with its worker starts anew.

What only the exact line search of batch methods needs: scores stay with the rows, so
`risk` has handles of them, `shard` the rows with recipes to make lost ones anew, and
`merging` finds the minimum along a line in sorted lists of breakpoints. A method that
asks for values and planes alone, as bundle methods without a line search do, would need
none of these three.
"""
