*** Settings ***
Documentation       UDP flows through stateful firewalls: 64 to five million. Published figures are of O.
...                 Cochard-Labbé's benchmarks (2018). The study is ``variables/studies/freebsd_states.yaml``.
Resource            ../../resources/study.resource
Suite Setup         Run Study    freebsd_states
Test Tags           study    freebsd


*** Test Cases ***
Everything Was Measured
    [Documentation]    No figure is missing.
    Every Figure Should Be Measured

Figures Agree With The Published Ones
    [Documentation]    Published: five runs of each.
    Published Figures Should Be Met    at_least=0.9    explained=True

States Of ipfw Are In Chains
    [Documentation]    Published: with a million flows ipfw forwards a hundredth, and pf as much as before.
    Figure Should Be    inet4    hp_cxgbe, ipfw, 1M flows    ≤    200000
    Figure Should Be    inet4    hp_cxgbe, pf, 1M flows    ≥    2500000
