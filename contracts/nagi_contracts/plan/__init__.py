# SPDX-License-Identifier: Apache-2.0
"""The run plan: everything that one run needs, resolved.

The plan is the only contract between the experiment side and the labs: a lab adds nothing to a run
that its plan does not say. Instants are seconds from the start of the run.

| module | contents |
| --- | --- |
| `direction` | what one direction of a link does to packets |
| `radio`, `fpga` | emulators other than nagi-link |
| `link` | links, and directions as references to them |
| `flow` | flows, their applications and schemes; captures |
| `switch`, `node` | nodes, their routes, and switches with their ports |
| `ids` | canonical JSON and the hashes made of it |
| `run` | the plan of a run |
"""

from nagi_contracts.plan.direction import (
    DIRECTIONS,
    ETHERNET_MTU,
    OTHER_DIRECTION,
    SHAPED_FIELDS,
    ArqPlan,
    DirectionName,
    DirectionPlan,
    ModePlan,
    RateAdaptationPlan,
)
from nagi_contracts.plan.flow import (
    NUMBER_MARK,
    CapturePlan,
    CommandFile,
    CommandPlan,
    FlowPlan,
    FromFile,
    SchemeObjectPlan,
)
from nagi_contracts.plan.fpga import FpgaPlan
from nagi_contracts.plan.ids import digest, to_canonical_json
from nagi_contracts.plan.link import LinkDirection, LinkEnd, LinkPlan
from nagi_contracts.plan.node import NodePlan, RoutePlan
from nagi_contracts.plan.radio import (
    CarriersPlan,
    CodeRate,
    InterfererPlan,
    Modulation,
    RadioChannelPlan,
    RadioModePlan,
    RadioPlan,
    SampleClockPlan,
    TapPlan,
    UhdEndPlan,
    UhdPlan,
)
from nagi_contracts.plan.run import ExperimentRef, Interval, RunPlan, Timeline
from nagi_contracts.plan.switch import (
    TARGETS_WITHOUT_DROP_LOG,
    OwnPipelinePlan,
    SwitchPlan,
    SwitchPortPlan,
    SwitchTarget,
)
from nagi_contracts.traces import OpportunityTrace, StepTrace

__all__ = [
    "DIRECTIONS",
    "ETHERNET_MTU",
    "NUMBER_MARK",
    "OTHER_DIRECTION",
    "SHAPED_FIELDS",
    "TARGETS_WITHOUT_DROP_LOG",
    "ArqPlan",
    "CapturePlan",
    "CarriersPlan",
    "CodeRate",
    "CommandFile",
    "CommandPlan",
    "DirectionName",
    "DirectionPlan",
    "ExperimentRef",
    "FlowPlan",
    "FpgaPlan",
    "FromFile",
    "InterfererPlan",
    "Interval",
    "LinkDirection",
    "LinkEnd",
    "LinkPlan",
    "ModePlan",
    "Modulation",
    "NodePlan",
    "OpportunityTrace",
    "OwnPipelinePlan",
    "RadioChannelPlan",
    "RadioModePlan",
    "RadioPlan",
    "RateAdaptationPlan",
    "RoutePlan",
    "RunPlan",
    "SampleClockPlan",
    "SchemeObjectPlan",
    "StepTrace",
    "SwitchPlan",
    "SwitchPortPlan",
    "SwitchTarget",
    "TapPlan",
    "Timeline",
    "UhdEndPlan",
    "UhdPlan",
    "digest",
    "to_canonical_json",
]
