*** Settings ***
Documentation       Rules of ipfw, pf and ipf before the one that matches: none to a thousand. Published figures are
...                 of O. Cochard-Labbé's benchmarks (2018). The study is ``variables/studies/freebsd_rules.yaml``.
Resource            ../../resources/study.resource
Suite Setup         Run Study    freebsd_rules
Test Tags           study    freebsd


*** Test Cases ***
Everything Was Measured
    [Documentation]    No figure is missing.
    Every Figure Should Be Measured

Figures Agree With The Published Ones
    [Documentation]    Published: five runs of each.
    Published Figures Should Be Met    at_least=0.9    explained=True

Rules Cost Something
    [Documentation]    Published: each rule of ipf and ipfw costs each frame; pf makes its rules a table.
    Figure Should Be    inet4    hp_cxgbe, ipf, 1000 rules    ≤    2000000
    Figure Should Be    inet4    hp_cxgbe, pf, 1000 rules    ≥    2500000
