#!/bin/sh
# shellcheck disable=SC2119 # functions of tests/vm/init
# The rank of machine a is killed while it drives cards, through vfio where there is an IOMMU, else uio; its job goes on.
host || exit 1
network
await_other || exit 1
offer_cards
masters() { for slot in $(cards); do echo $(($(command_word "$slot") & 4)); done | awk '{n += $1 / 4} END {print n}'; }
on_both --keep-going -n 2 --transport i8255x "$BUILD/tests/multi-fm_beat" 500 20 >/tmp/said 2>&1 &
job=$!
for _ in $(seq 200); do [ "$(masters)" = 2 ] && break; sleep 0.1; done
sleep 2
ok "a rank drives both cards through $([ -n "$(ls /sys/kernel/iommu_groups)" ] && echo vfio || echo uio)" $(($(masters) != 2))
rank=$(grep -lsx multi-fm_beat /proc/[0-9]*/comm | head -n 1)
rank=${rank#/proc/}
kill -9 "${rank%/comm}"
for _ in $(seq 50); do [ "$(masters)" = 0 ] && break; sleep 0.1; done
kill -0 $job && [ "$(masters)" = 0 ]
ok "when it is killed its cards are silent at once, while the job goes on" $?
wait $job
grep -q '^beat 1 .*dead 0' /tmp/said
ok "its peer is told" $?
on_both -n 2 --transport i8255x "$BUILD/tests/multi-fm_beat" 20 20 >/tmp/said 2>&1 && [ "$(grep -c '^beat .* frames' /tmp/said)" = 2 ]
ok "the next job has the cards" $?
sed 's/^/# /' /tmp/said
end_other
