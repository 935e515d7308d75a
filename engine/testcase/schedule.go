package testcase

import (
	"fmt"
	"slices"
	"strings"

	"operetta.dev/engine/cluster/faulty"
	"operetta.dev/engine/dryrun"
)

// A schedule is one order of what happens in a test, and of what fails. The zero schedule is the one in which nothing
// fails, and each step begins when the one before has come to rest.
type schedule struct {
	// step is the step in which something fails.
	step int
	plan faulty.Plan
	// away is true if the operator that dies in the step starts again only in the next one.
	away bool
	// early is the write of the step after which the next step begins already, or 0.
	early int
	// frozen is for how many reconciles of the step the cache shows what was there before.
	frozen int
	// controllers are when the simulated controllers act, in all steps.
	controllers dryrun.Controllers
}

// String is the name of the schedule, by which it is played again.
func (s schedule) String() string {
	var out []string
	if plan := s.plan.String(); plan != "" {
		out = append(out, plan)
	}
	if s.away {
		out = append(out, "away until the next step")
	}
	if s.early > 0 {
		out = append(out, fmt.Sprintf("the next step begins after write %d", s.early))
	}
	if s.frozen > 0 {
		out = append(out, fmt.Sprintf("the cache is frozen for %d reconciles", s.frozen))
	}
	text := strings.Join(out, ", ")
	if text != "" {
		text = fmt.Sprintf("step %d: %s", s.step, text)
	}
	switch s.controllers {
	case dryrun.ActAtRest, dryrun.ActAfterWrites:
		return strings.TrimPrefix(text+"; controllers act "+string(s.controllers), "; ")
	case dryrun.ActPromptly, dryrun.ActNever:
	}
	return text
}

// secondCrashes is after how many writes of the new process a second crash comes at most.
const secondCrashes = 4

// schedules returns the schedules of a test by how many writes each of its steps has: those with one deviation, and
// those with two. Each list begins with the first step and write.
func schedules(writes []int) (one, two []schedule) {
	for step, n := range writes {
		last := step == len(writes)-1
		for k := 1; k <= n; k++ {
			crash := schedule{step: step, plan: faulty.Plan{CrashAfter: []int{k}}}
			one = append(one, crash, schedule{step: step, plan: faulty.Plan{LoseAt: k}}, schedule{step: step, plan: faulty.Plan{RefuseAt: k}})
			late := crash
			late.controllers = dryrun.ActAtRest
			two = append(two, late)
			for j := 1; j <= secondCrashes; j++ {
				two = append(two, schedule{step: step, plan: faulty.Plan{CrashAfter: []int{k, j}}})
			}
			if last {
				continue
			}
			one = append(one, schedule{step: step, early: k})
			away := crash
			away.away = true
			two = append(two, away, schedule{step: step, early: k, plan: faulty.Plan{CrashAfter: []int{k + 1}}})
		}
		one = append(one, schedule{step: step, frozen: 1}, schedule{step: step, frozen: frozenReconciles})
	}
	one = append(one, schedule{controllers: dryrun.ActAtRest}, schedule{controllers: dryrun.ActAfterWrites})
	return one, two
}

// pairShare is the part of the bound that is for schedules with two deviations where not even all with one are tried.
const pairShare = 4

// chosen returns at most so many schedules: first those with one deviation, and then some with two. If there are more
// with one than the bound, a share is left for pairs, which find what one deviation alone does not.
func chosen(one, two []schedule, bound int) []schedule {
	if len(one) > bound {
		one = spread(one, bound-min(bound/pairShare, len(two)))
	}
	return slices.Concat(one, spread(two, bound-len(one)))
}

// golden is the golden section in thousandths: parts of it never come to a rhythm.
const golden = 618

// spread returns n of all, in their order and as evenly as it can be: one of each share, not always at the same place of
// it, because what fails alternates from one schedule to the next.
func spread(all []schedule, n int) []schedule {
	if len(all) <= n {
		return all
	}
	out := make([]schedule, 0, n)
	for i := range n {
		from, to := i*len(all)/n, (i+1)*len(all)/n
		out = append(out, all[from+i*golden%1000*(to-from)/1000])
	}
	return out
}
