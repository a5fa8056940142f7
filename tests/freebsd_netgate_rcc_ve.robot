*** Settings ***
Documentation       Netgate RCC-VE 4860 with FreeBSD 11.1, with the patches of two kernel locks, tuned:
...                 forwarding SLA of its two ports, smallest frames.
...                 Source of the figures named in each test: the five-run samples of O. Cochard-Labbe's repository
...                 ocochard/netbenches (2018), which the studies ``freebsd_*`` have as well.
Metadata            SLA    ocochard/netbenches, https://github.com/ocochard/netbenches
Resource            ../resources/acceptance.resource
Suite Setup         Open Testbed For    freebsd_netgate_rcc_ve    software=igb_tuned    testbed=${TESTBED}
Suite Teardown      Close Testbed
Test Tags           freebsd_netgate_rcc_ve    freebsd    64b


*** Variables ***
${TESTBED}      simulated


*** Test Cases ***
Most Of A Gigabit Of Smallest Frames
    [Documentation]    Published: 1.23 Mpps of 2000 flows at saturation.
    [Tags]    saturation
    64b 2000-flows unidirectional forwards ≥ 1.17 Mpps

Two Thirds Of A Gigabit Without Loss
    [Documentation]    Within what the box carries.
    [Tags]    loss
    64b 2000-flows unidirectional ≥ 1 Mpps
