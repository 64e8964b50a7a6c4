/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A transfer as a host sees it: a descriptor in SRAM, found by polling, a DMA, a word back by DMA. */
#include "sim/myrinet/hw/nic.h"
#include "sim/myrinet/systems/probe/layout.h"

volatile struct probe_card card;

void fw_main(void);
void fw_main(void)
{
    uint32_t done = 0;
    for (;;) {
        uint32_t status = nic_read(ISR);
        if (card.go != done && (status & HDONE)) {
            nic_dma(card.host, SRAM_AT(card.buffer), FROM_HOST, card.bytes);
            card.count = ++done;
            while (!(nic_read(ISR) & HDONE))
                ;
            nic_dma(card.status_at, SRAM_AT(&card.count), TO_HOST, 4);
        }
    }
}
