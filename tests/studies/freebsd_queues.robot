*** Settings ***
Documentation       Receive queues from one to as many as the machine has cores, and locks as released. Published
...                 figures are of O. Cochard-Labbé's benchmarks (2018). The study is
...                 ``variables/studies/freebsd_queues.yaml``.
Resource            ../../resources/study.resource
Suite Setup         Run Study    freebsd_queues
Test Tags           study    freebsd


*** Test Cases ***
Everything Was Measured
    [Documentation]    No figure is missing.
    Every Figure Should Be Measured

Figures Agree With The Published Ones
    [Documentation]    Published: five runs of each.
    Published Figures Should Be Met    at_least=0.9    explained=True

Eight Queues Carry More Than Two
    [Documentation]    Published: the cores scale once the locks are patched.
    Figure Should Be    inet4    dell_mlx5en, 16 queues    ≥    10000000
    Figure Should Be    inet4    dell_mlx5en, 2 queues    ≤    5000000
