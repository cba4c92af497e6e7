# SPDX-License-Identifier: Apache-2.0
"""The entities of P4Runtime (specification, "P4 Entity Messages"), one module per subject.

For each entity, a module has two functions. `plan_*` converts an update of the entity to
operations, which it adds to a Plan. `read_*` reads the requested entities from the switch, and adds
them to the Responses of a Read.

All functions raise P4Error if the message is wrong or names an object that does not exist, and
Refused if the switch refuses a read.
"""
