*** Settings ***
Documentation       This machine's kernel on its interfaces, and on bridges that have them as members.
...                 It needs root. The study is ``variables/studies/linux_bridge.yaml``.
Resource            ../../resources/study.resource
Suite Setup         Run Study    linux_bridge    testbed=${TESTBED}
Test Tags           study    kernel    bridge


*** Variables ***
${TESTBED}      netns


*** Test Cases ***
Everything Was Measured
    [Documentation]    No figure is missing.
    Every Figure Should Be Measured

Bridges Cost Time
    [Documentation]    A frame passes two bridges more.
    Difference Should Be    one flow    bridges    more

The Same Router Is The Same
    [Documentation]    A difference between equal variants would be a false one.
    Difference Should Be    one flow    interfaces again    not proven
