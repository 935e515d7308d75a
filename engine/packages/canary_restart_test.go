package packages

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestTheDeadlineOfACanaryDoesNotRunWhileNobodyDecides(t *testing.T) {
	t.Parallel()
	names := byHash(5)
	first, second := names[0], names[1]
	apply := func(spec map[string]any) func(*site) { return func(s *site) { s.apply("p", spec) } }
	later := func(d time.Duration) func(*site) { return func(s *site) { s.now = s.now.Add(d) } }
	begin := turn{apply(canaried(text("Thing", "a"))), "True Served", []string{"install", "serve Thing"}}
	create := turn{func(s *site) {
		for _, name := range names {
			s.resources = append(s.resources, resource(name, "", waiting))
		}
		s.reconciled()
	}, "True Served", nil}
	try := turn{apply(canaried(text("Thing", "b"))), "False CanaryProgressing", []string{"install", "canary " + first + " " + second}}
	outage := turn{func(s *site) { s.now = s.now.Add(time.Hour); s.restart() }, "False CanaryProgressing", []string{"install", "serve Thing outdated: ", "canary " + first + " " + second}}
	for name, row := range map[string]struct {
		reason string
		turns  []turn
	}{
		"resources that the outage alone has kept from being ready": {"what they say is from before the outage", []turn{
			begin, create, try,
			{pass(time.Second, waiting), "False CanaryProgressing", nil},
			outage,
			{pass(time.Second), "False CanaryReady", []string{"canary " + first + " " + second}},
			{pass(time.Minute), "True Served", []string{"install", "swap Thing"}},
		}},
		"resources that do not become ready": {"what was counted before the outage counts, and the rest of the deadline ends the canary", []turn{
			begin, create, try,
			{pass(time.Second, waiting), "False CanaryProgressing", nil},
			outage,
			{pass(time.Second, waiting), "False CanaryProgressing", []string{"canary " + first + " " + second}},
			{pass(9*time.Minute, waiting), "False CanaryProgressing", nil},
			{pass(time.Minute, waiting), "False CanaryRolledBack", []string{"canary ends", "install"}},
		}},
		"resources that fail": {"they say so in any case", []turn{
			begin, create, try,
			{pass(time.Second, waiting), "False CanaryProgressing", nil},
			outage,
			{pass(time.Second, failing), "False CanaryRolledBack", []string{"canary ends", "install"}},
		}},
		"resources that nothing reconciles": {"the canary ends without them, too", []turn{
			begin, create, try,
			{pass(time.Second, waiting), "False CanaryProgressing", nil},
			outage,
			{later(time.Second), "False CanaryProgressing", []string{"canary " + first + " " + second}},
			{later(9 * time.Minute), "False CanaryProgressing", nil},
			{later(time.Minute), "False CanaryRolledBack", []string{"canary ends", "install"}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newSite(t).play(row.reason, row.turns)
		})
	}
}

func TestTheDeadlineOfACanaryComesHoweverOftenTheOperatorRestarts(t *testing.T) {
	t.Parallel()
	names := byHash(5)
	for name, row := range map[string]struct {
		reason string
		// lives is how long each process lives, and outage how long none does then.
		lives, outage time.Duration
		// each is what happens to the resources of the canary in each life.
		each func(u *Resource, life int)
		// least and most are how many lives the canary has; none is 0.
		least, most int
	}{
		"every twelve seconds":             {"a process that has just begun notes it sooner", 12 * time.Second, time.Second, func(u *Resource, _ int) { waiting(u) }, 150, 260},
		"every fifty seconds":              {"each has a moment less to wait than nobody reconciles it", 50 * time.Second, time.Second, func(u *Resource, _ int) { waiting(u) }, 20, 40},
		"every four minutes":               {"of each life, up to a minute is not noted", 4 * time.Minute, time.Second, func(u *Resource, _ int) { waiting(u) }, 3, 4},
		"every four minutes, and for days": {"the time without an operator does not count", 4 * time.Minute, 100 * time.Hour, func(u *Resource, _ int) { waiting(u) }, 3, 4},
		"just before the deadline":         {"there is a minute left after it", 599 * time.Second, time.Hour, func(u *Resource, _ int) { waiting(u) }, 2, 2},
		"they are ready now and then": {"each time has a deadline of its own", 4 * time.Minute, time.Second, func(u *Resource, life int) {
			if life%2 == 0 {
				waiting(u)
			}
		}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.apply("p", canaried(text("Thing", "a")))
			_ = s.step("p")
			for _, name := range names {
				s.resources = append(s.resources, resource(name, "", waiting))
			}
			s.reconciled()
			_ = s.step("p")
			s.apply("p", canaried(text("Thing", "b")))
			_ = s.step("p")
			lives := 1
			for ; lives < max(10, row.most+1); lives++ {
				if s.live(row.lives, func(u *Resource) { row.each(u, lives) }) {
					break
				}
				s.now = s.now.Add(row.outage)
				s.restart()
				_ = s.step("p")
			}
			if row.most > 0 && (lives < row.least || lives > row.most) || row.most == 0 && lives < 10 {
				t.Errorf("%s: it has gone back in life %d, want %d to %d: %v", row.reason, lives, row.least, row.most, s.get("p").Object["status"])
			}
		})
	}
}

// live has time pass with a look every two seconds, and reports whether the canary has gone back.
func (s *site) live(d time.Duration, canary func(*Resource)) bool {
	for until := s.now.Add(d); s.now.Before(until); s.now = s.now.Add(canaryAgain) {
		changed := map[string]time.Time{}
		for _, u := range s.resources {
			changed[u.Name] = u.Changed
		}
		s.reconciled(canary)
		for i := range s.resources {
			s.resources[i].Changed = changed[s.resources[i].Name]
		}
		_ = s.step("p")
		if s.ready("p") == "False CanaryRolledBack" {
			return true
		}
	}
	return false
}

func TestTheTimeOfACanaryIsNotedSoonAndThenOnceAMinute(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.apply("p", canaried(text("Thing", "a")))
	_ = s.step("p")
	for _, name := range byHash(60) {
		s.resources = append(s.resources, resource(name, "", waiting))
	}
	s.reconciled()
	_ = s.step("p")
	s.apply("p", canaried(text("Thing", "b")))
	_ = s.step("p")
	s.live(canaryAgain, waiting)
	written := map[string]bool{}
	for range 9 * time.Minute / canaryAgain {
		s.live(canaryAgain, waiting)
		written[s.get("p").GetResourceVersion()] = true
	}
	if n := len(written); n < 10 || n > 13 {
		t.Errorf("the status was written %d times in 9 minutes", n)
	}
}

func TestAForgedTimeOfACanaryLeavesAMinuteAndNoMore(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason         string
		judged, waited any
		// deadline is that of the canary, and ends when it goes back.
		deadline, ends time.Duration
	}{
		"a short one":   {"a process that lives for half a minute ends it, too", "999999h", "999999h", 90 * time.Second, 9 * time.Second},
		"for years":     {"nobody has reconciled it since, and processes seem to end at once", "999999h", "999999h", 10 * time.Minute, 10 * time.Second},
		"for long":      {"nobody has reconciled it since", "19m0s", "19m0s", 10 * time.Minute, time.Minute},
		"less than all": {"the rest is left", "4m0s", "4m0s", 10 * time.Minute, 6 * time.Minute},
		"less than 0":   {"it is nothing", "-5h", "-5h", 10 * time.Minute, 10 * time.Minute},
		"no time":       {"it is nothing", int64(5), "x", 10 * time.Minute, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			says := map[string]any{
				"digest": "new", "from": "old", "phase": "Progressing", "since": stamp(began), "judgedAt": stamp(began), "judgedFor": row.judged,
				"notReady": []any{"x", map[string]any{"resource": "ns/one", "reason": "NotReady", "notReadyFor": row.waited}},
			}
			at := began.Add(time.Hour)
			c := *restoredCanary(Package{object: &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"canary": says}}}}, at)
			all := []Resource{resource("one", "new", waiting)}
			spec := share("100%")
			spec.Deadline.Duration = row.deadline
			for _, m := range []struct {
				after time.Duration
				want  canaryAction
			}{{0, continueCanary}, {row.ends - time.Second, continueCanary}, {row.ends, rollBackCanary}} {
				var got canaryAction
				if c, got = c.follow(spec, all, at.Add(m.after)); got != m.want {
					t.Errorf("%s: after %s the action is %d, want %d", row.reason, m.after, got, m.want)
				}
			}
		})
	}
}
