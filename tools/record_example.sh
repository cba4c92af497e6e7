#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# After a change of a contract, write the schemas and record their examples again, in experiments/schemas.
set -euo pipefail
cd "$(dirname "$0")/.."
example=experiments/schemas/example
.venv/bin/python -m nagi.json_schemas
.venv/bin/python -m nagi.labs.inventory
rm -rf $example/campaign
tools/as_root .venv/bin/nagi run $example/experiment.yaml --variant short --only scheme=cubic --lab netns --out $example/campaign
rm -rf $example/campaign/{.lock,report.pdf,figures} $example/campaign/runs/*.invalid-*
