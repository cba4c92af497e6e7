# SPDX-License-Identifier: Apache-2.0
"""The run plan: all settings of one run, without references to other files and without defaults.

A lab needs only the plan to execute the run, and adds no setting of its own. Instants are seconds
from the start of the run.

| module | contents |
| --- | --- |
| `direction` | one direction of a link: rate, delay, queue and impairments |
| `radio`, `fpga` | links that nagi-sdr or an FPGA emulates |
| `link` | links, and references to their directions |
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
