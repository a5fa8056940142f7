*** Settings ***
Documentation       nftables on this machine's kernel: 0 to 1000 rules that do not match before the one that accepts.
...                 It needs root and ``nft``. The study is ``variables/studies/nftables_rules.yaml``.
Resource            ../../resources/study.resource
Suite Setup         Run Study    nftables_rules    testbed=${TESTBED}
Test Tags           study    kernel    nftables


*** Variables ***
${TESTBED}      netns


*** Test Cases ***
Everything Was Measured
    [Documentation]    No figure is missing.
    Every Figure Should Be Measured

Rules Cost Time
    [Documentation]    nftables looks at one rule after the other.
    Difference Should Be    one flow    1000 rules    more

The Same Router Is The Same
    [Documentation]    A difference between equal variants would be a false one.
    Difference Should Be    one flow    no firewall again    not proven
