# SPDX-License-Identifier: Apache-2.0
"""The lab that `nagi run` and `nagi plan` choose, and that a campaign stays in its lab."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from nagi.campaign.directory import CampaignDirectory
from nagi.cli.main import main
from nagi.terminal import selecting
from nagi.terminal.selecting import LabChoice, choose_lab, require_same_lab
from nagi_contracts.errors import InputError, refuse
from nagi_contracts.paths import SCHEMAS
from prefixes import make_prefix

CAMPAIGN = SCHEMAS / "example" / "campaign"  # of the netns lab
EXPERIMENT = SCHEMAS / "example" / "experiment.yaml"
INVENTORY = Path("lab.yml")


def able() -> None:
    """Do nothing, as this machine can execute guests."""


def not_able() -> None:
    raise refuse("no guests here", "build them")


@pytest.mark.parametrize("has_root", [False, True])
def test_the_virtual_lab_is_used_unless_another_is_asked_for(has_root):
    machine = {"has_root": has_root, "require_guests": able}
    assert choose_lab(None, None, **machine) == LabChoice("virtual")
    assert choose_lab("netns", None, **machine) == LabChoice("netns")
    assert choose_lab(None, INVENTORY, **machine) == LabChoice("physical")
    with pytest.raises(InputError, match="the virtual lab has no inventory"):
        choose_lab("virtual", INVENTORY, **machine)
    with pytest.raises(InputError, match="no such lab; one of: virtual, netns, physical"):
        choose_lab("moon", None, **machine)


def test_where_it_cannot_be_used_root_gets_netns_and_is_told(capsys):
    choice = choose_lab(None, None, has_root=True, require_guests=not_able)
    assert choice == LabChoice("netns", "no guests here; build them")
    selecting.report_lab_choice(choice)
    output = capsys.readouterr().err
    assert (
        "the netns lab is used, because the virtual lab cannot be used: no guests here; build them"
        in output
    )
    # Whoever asks for a lab gets that one.
    asked = choose_lab("virtual", None, has_root=True, require_guests=not_able)
    assert asked == LabChoice("virtual")


def test_where_it_cannot_be_used_others_get_both_cures():
    with pytest.raises(InputError) as error:
        choose_lab(None, None, has_root=False, require_guests=not_able)
    output = str(error.value)
    assert "the virtual lab cannot be used: no guests here; build them; or run the same" in output
    assert "with sudo, for the netns lab" in output


def test_without_a_guest_kernel_plans_are_for_netns(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("NAGI_PREFIX", str(make_prefix(tmp_path / "prefix", without=["guest"])))
    monkeypatch.setattr(sys, "argv", ["nagi", "plan", str(EXPERIMENT)])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 0
    output = capsys.readouterr()
    assert "planned for the netns lab" in output.err
    assert "build it: `nagi setup virtual-lab`" in output.err
    assert "8 of them possible in the netns lab" in output.out


def test_a_campaign_stays_in_its_lab(tmp_path):
    directory = CampaignDirectory(Path(shutil.copytree(CAMPAIGN, tmp_path / "out")))
    require_same_lab(directory, LabChoice("netns"))
    with pytest.raises(InputError) as error:
        require_same_lab(directory, LabChoice("virtual"))
    output = str(error.value)
    assert "are of the netns lab, and the new runs would be of the virtual lab" in output
    assert "continue with --lab netns, or give another directory with --out" in output
    text = directory.campaign_file.read_text().replace('"netns"', '"physical"')
    directory.campaign_file.write_text(text)
    with pytest.raises(InputError, match="continue with -i INVENTORY"):
        require_same_lab(directory, LabChoice("netns"))


def test_where_nothing_has_been_run_any_lab_may_be_used(tmp_path):
    directory = CampaignDirectory(Path(shutil.copytree(CAMPAIGN, tmp_path / "out")))
    for lab in ("virtual", "physical"):
        require_same_lab(CampaignDirectory(tmp_path / "none"), LabChoice(lab))
    shutil.rmtree(directory.runs)
    require_same_lab(directory, LabChoice("virtual"))
