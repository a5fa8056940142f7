*** Settings ***
Documentation       nftables on this machine's kernel: a set of 1 to 10 000 addresses.
...                 It needs root and ``nft``. The study is ``variables/studies/nftables_sets.yaml``.
Resource            ../../resources/study.resource
Suite Setup         Run Study    nftables_sets    testbed=${TESTBED}
Test Tags           study    kernel    nftables


*** Variables ***
${TESTBED}      netns


*** Test Cases ***
Everything Was Measured
    [Documentation]    No figure is missing.
    Every Figure Should Be Measured

The Same Router Is The Same
    [Documentation]    A difference between equal variants would be a false one.
    Difference Should Be    one flow    no firewall again    not proven
