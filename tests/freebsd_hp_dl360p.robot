*** Settings ***
Documentation       HP ProLiant DL360p Gen8 with FreeBSD 11.1, with the patches of two kernel locks, tuned:
...                 forwarding SLA of its two ports, smallest frames.
...                 Source of the figures named in each test: the five-run samples of O. Cochard-Labbe's repository
...                 ocochard/netbenches (2018), which the studies ``freebsd_*`` have as well.
Metadata            SLA    ocochard/netbenches, https://github.com/ocochard/netbenches
Resource            ../resources/acceptance.resource
Suite Setup         Open Testbed For    freebsd_hp_dl360p    software=cxgbe_tuned    testbed=${TESTBED}
Suite Teardown      Close Testbed
Test Tags           freebsd_hp_dl360p    freebsd    64b


*** Variables ***
${TESTBED}      simulated


*** Test Cases ***
Ten Million Packets
    [Documentation]    Published: 10.9 Mpps of 2000 flows at saturation.
    [Tags]    saturation
    64b 2000-flows unidirectional forwards ≥ 10.4 Mpps

Eight Million Packets Without Loss
    [Documentation]    Within what the box carries.
    [Tags]    loss
    64b 2000-flows unidirectional ≥ 8 Mpps
