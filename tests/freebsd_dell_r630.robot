*** Settings ***
Documentation       Dell PowerEdge R630 with FreeBSD 11.1, with the patches of two kernel locks, tuned:
...                 forwarding SLA of its two ports, smallest frames.
...                 Source of the figures named in each test: the five-run samples of O. Cochard-Labbe's repository
...                 ocochard/netbenches (2018), which the studies ``freebsd_*`` have as well.
Metadata            SLA    ocochard/netbenches, https://github.com/ocochard/netbenches
Resource            ../resources/acceptance.resource
Suite Setup         Open Testbed For    freebsd_dell_r630    software=cxgbe_tuned    testbed=${TESTBED}
Suite Teardown      Close Testbed
Test Tags           freebsd_dell_r630    freebsd


*** Variables ***
${TESTBED}      simulated


*** Test Cases ***
Smallest Frames Nearly Fill The Line
    [Documentation]    Published: 14.79 Mpps of 2000 flows, 99.4 % of line rate.
    [Tags]    saturation
    64b 2000-flows unidirectional forwards ≥ 95% line rate

Internet Mix Fills The Line
    [Documentation]    Larger frames than those of the published runs.
    [Tags]    imix
    imix 2000-flows unidirectional ≥ 95% line rate
