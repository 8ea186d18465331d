"""What the operator does with a Redrive: dead letters of one consumer go back, or are deleted, once.

The rule the code does not show: nothing is moved that was not written into the object's status before. A Redrive that
is taken up again, by this operator or by the next, so never moves more than its limit; and what it has put back bears
its mark, so that it never puts the same letter back twice when that has died again.
"""
