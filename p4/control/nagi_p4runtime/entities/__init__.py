# SPDX-License-Identifier: Apache-2.0
"""The entities of P4Runtime (specification, "P4 Entity Messages"), one module per subject.

A module has a function `plan_*` per entity, which adds to a Plan the operations that perform an
update, and a function `read_*`, which reads the entity from the switch and writes it into the
Responses of a Read.
"""
