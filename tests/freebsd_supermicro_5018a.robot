*** Settings ***
Documentation       SuperMicro 5018A-FTN4 with FreeBSD 11.1, with the patches of two kernel locks, tuned:
...                 forwarding SLA of its two ports, smallest frames.
...                 Source of the figures named in each test: the five-run samples of O. Cochard-Labbe's repository
...                 ocochard/netbenches (2018), which the studies ``freebsd_*`` have as well.
Metadata            SLA    ocochard/netbenches, https://github.com/ocochard/netbenches
Resource            ../resources/acceptance.resource
Suite Setup         Open Testbed For    freebsd_supermicro_5018a    software=cxgbe_tuned    testbed=${TESTBED}
Suite Teardown      Close Testbed
Test Tags           freebsd_supermicro_5018a    freebsd    64b


*** Variables ***
${TESTBED}      simulated


*** Test Cases ***
Four Million Packets
    [Documentation]    Published: 4.15 to 4.32 Mpps of 2000 flows at saturation.
    [Tags]    saturation
    64b 2000-flows unidirectional forwards ≥ 3.8 Mpps

Three Million Packets Without Loss
    [Documentation]    Within what the box carries.
    [Tags]    loss
    64b 2000-flows unidirectional ≥ 3 Mpps
