*** Settings ***
Documentation       Gowin N305 with ConnectX-4 and ConnectX-5, DPDK and RDMA: eight rows each, receive queues, and
...                 settings of the card, beside the figures of the public review of this box (ipng.ch, August 2024).
...                 The study is ``variables/studies/gowin_n305.yaml``.
Resource            ../../resources/study.resource
Suite Setup         Run Study    gowin_n305
Test Tags           study    gowin_n305


*** Test Cases ***
Everything Was Measured
    [Documentation]    No figure is missing.
    Every Figure Should Be Measured

Tables Agree With The Review
    [Documentation]    Published: 32 rows of two cards and two drivers.
    Published Figures Should Be Met    1514b unidirectional
    Published Figures Should Be Met    64b unidirectional
    Published Figures Should Be Met    64b 1-flow unidirectional
    Published Figures Should Be Met    64b mpls unidirectional
    Published Figures Should Be Met    1514b bidirectional
    Published Figures Should Be Met    64b bidirectional
    Published Figures Should Be Met    64b 1-flow bidirectional
    Published Figures Should Be Met    64b mpls bidirectional

What Does Not Agree Is Explained
    [Documentation]    Published: what three receive queues take in and send. The review gives
    ...    no reason for it.
    Published Figures Should Be Met    at_least=0.92    explained=True

Labels Cost Nothing
    [Documentation]    Published: the cards look behind an MPLS label, so labelled flows spread like others.
    Figure Should Be    64b mpls bidirectional    ConnectX-5 DPDK    ≥    55
    Figure Should Be    64b mpls unidirectional    ConnectX-4 RDMA    ≥    45

Settings Of The Card Help
    [Documentation]    Published: compressed completions and larger reads help in all cases, without figures.
    Difference Should Be    64b saturated    CQE compression    more
    Difference Should Be    64b saturated    PCI read size 1 KiB    more
    Difference Should Be    64b saturated    flex parser    not proven    within=5

The Card Sends Less Than One Worker Takes In
    [Documentation]    Published: 12.1 to 12.4 Mpps taken in, 9.4 Mpps sent, with one receive queue.
    Figure Should Be    taken in    1 receive queue    ≥    11.5
    Figure Should Be    64b saturated    1 receive queue    ≤    10
    Figure Should Be    dropped at tx    1 receive queue    ≥    2
