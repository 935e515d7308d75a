package packages

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// began is when the canaries of these tests began.
var began = time.Unix(1_800_000_000, 0)

// resource returns a resource that is ready with a version. Its UID is its name.
func resource(name, digest string, change ...func(*Resource)) Resource {
	u := Resource{NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}, UID: types.UID(name), Digest: digest, Ready: true, Reason: "Ready", Changed: began}
	for _, f := range change {
		f(&u)
	}
	return u
}

func waiting(u *Resource) { u.Ready, u.Reason = false, "NotReady" }
func failing(u *Resource) { u.Ready, u.Failed, u.Reason = false, true, "Failed" }
func paused(u *Resource)  { u.Paused = true }
func deleted(u *Resource) { u.Deleted = true }
func pinnedTo(digest string) func(*Resource) {
	return func(u *Resource) { u.Pin = digest }
}
func labelled(u *Resource) { u.Labels = map[string]string{"canary": "yes"} }

// byHash returns the names of n resources in the order in which a share chooses them.
func byHash(n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprint("r", i))
	}
	slices.SortFunc(out, func(a, b string) int {
		if hashOf(types.UID(a)) < hashOf(types.UID(b)) {
			return -1
		}
		return 1
	})
	return out
}

func share(text string) *CanarySpec {
	return &CanarySpec{Share: text, ReadyFor: &metav1.Duration{Duration: time.Minute}, Deadline: &metav1.Duration{Duration: 10 * time.Minute}}
}

func bySelector() *CanarySpec {
	out := share("")
	out.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"canary": "yes"}}
	return out
}

func TestWhatACanaryIsAndWhatBecomesOfIt(t *testing.T) {
	t.Parallel()
	names := byHash(10)
	all := func(digest string, change ...func(*Resource)) []Resource {
		var out []Resource
		for _, name := range names {
			out = append(out, resource(name, digest, change...))
		}
		return out
	}
	with := func(list []Resource, at int, digest string, change ...func(*Resource)) []Resource {
		out := slices.Clone(list)
		out[at] = resource(out[at].Name, digest, change...)
		return out
	}
	fresh := canary{digest: "new", from: "old", phase: CanaryProgressing, began: began}
	ready := fresh
	ready.phase, ready.readySince = CanaryReady, began
	for name, row := range map[string]struct {
		reason    string
		was       canary
		spec      *CanarySpec
		resources []Resource
		after     time.Duration
		want      canaryAction
		phase     CanaryPhase
		chosen    []string
		why       string
	}{
		"nobody":                                   {"there is nobody whom it could harm", fresh, share("10%"), nil, 0, promoteCanary, CanaryReady, nil, ""},
		"everybody is about to go":                 {"deleted resources get nothing new", fresh, share("10%"), all("old", deleted), 0, promoteCanary, CanaryReady, nil, ""},
		"the beginning":                            {"a tenth of ten is one", fresh, share("10%"), all("old"), 0, continueCanary, CanaryProgressing, names[:1], ""},
		"a share that is no whole number":          {"it is rounded up", fresh, share("11%"), all("old"), 0, continueCanary, CanaryProgressing, names[:2], ""},
		"a share of one resource":                  {"it is at least one", fresh, share("1%"), all("old")[:1], 0, continueCanary, CanaryProgressing, names[:1], ""},
		"everybody":                                {"a share may be all", fresh, share("100%"), all("old"), 0, continueCanary, CanaryProgressing, names, ""},
		"one that is not ready":                    {"it would say nothing about the content", fresh, share("10%"), with(all("old"), 0, "old", waiting), 0, continueCanary, CanaryProgressing, names[1:2], ""},
		"one that is paused":                       {"it would not be reconciled", fresh, share("10%"), with(all("old"), 0, "old", paused), 0, continueCanary, CanaryProgressing, names[1:2], ""},
		"none is ready":                            {"one of them may become so", fresh, share("10%"), all("old", waiting), 0, continueCanary, CanaryProgressing, nil, ""},
		"none is ready for long":                   {"it would wait for ever", fresh, share("10%"), all("old", waiting), 10 * time.Minute, rollBackCanary, CanaryProgressing, nil, "no resource could be tried within 10m0s: none of those that may be chosen is ready with old"},
		"it is ready":                              {"it has to be ready for some time", fresh, share("10%"), with(all("old"), 0, "new"), time.Minute, continueCanary, CanaryReady, names[:1], ""},
		"it is ready for long enough":              {"the others follow", ready, share("10%"), with(all("old"), 0, "new"), time.Minute, promoteCanary, CanaryReady, names[:1], ""},
		"it was unready in between":                {"the time begins with the last change that its condition knows", ready, share("10%"), with(all("old"), 0, "new", func(u *Resource) { u.Changed = began.Add(30 * time.Second) }), time.Minute, continueCanary, CanaryReady, names[:1], ""},
		"a change in the future":                   {"who writes a status may write any time, and the canary must end", ready, share("10%"), with(all("old"), 0, "new", func(u *Resource) { u.Changed = began.Add(time.Hour) }), time.Minute, continueCanary, CanaryReady, names[:1], ""},
		"it is not ready any more":                 {"the time begins anew", ready, share("10%"), with(all("old"), 0, "new", waiting), time.Minute, continueCanary, CanaryProgressing, names[:1], ""},
		"it fails":                                 {"it goes back at once", ready, share("10%"), with(all("old"), 0, "new", failing), time.Second, rollBackCanary, CanaryReady, names[:1], "1 resource has failed"},
		"another one fails":                        {"it has not got the content", ready, share("10%"), with(with(all("old"), 0, "new"), 5, "old", failing), time.Minute, promoteCanary, CanaryReady, names[:1], ""},
		"it is not ready by the deadline":          {"it goes back", fresh, share("10%"), with(all("old"), 0, "new", waiting), 10 * time.Minute, rollBackCanary, CanaryProgressing, names[:1], "0 of 1 resources are ready after 10m0s"},
		"it became ready just before the deadline": {"it gets the time to stay ready", ready, share("10%"), with(all("old"), 0, "new", func(u *Resource) { u.Changed = began.Add(599 * time.Second) }), 10 * time.Minute, continueCanary, CanaryReady, names[:1], ""},
		"one is paused before it is ready":         {"it has the content, and a pause proves nothing", ready, share("20%"), with(with(all("old"), 0, "new"), 1, "new", waiting, paused), time.Minute, continueCanary, CanaryProgressing, names[:2], ""},
		"one is paused after it has failed":        {"the content has made it fail", ready, share("20%"), with(with(all("old"), 0, "new"), 1, "new", failing, paused), time.Minute, rollBackCanary, CanaryReady, names[:2], "1 resource has failed"},
		"one is paused while it is ready":          {"it has proven what it can", ready, share("20%"), with(with(all("old"), 0, "new"), 1, "new", paused), time.Minute, promoteCanary, CanaryReady, names[:2], ""},
		"one is pinned before it is ready":         {"as long as it has the content, it counts", ready, share("20%"), with(with(all("old"), 0, "new"), 1, "new", waiting, pinnedTo("old")), time.Minute, continueCanary, CanaryProgressing, names[:2], ""},
		"one loses its label before it is ready":   {"who has got the content keeps it", ready, bySelector(), with(with(all("old"), 0, "new", labelled), 1, "new", waiting), time.Minute, continueCanary, CanaryProgressing, names[:2], ""},
		"by labels":                                {"nobody else is chosen", fresh, bySelector(), with(all("old"), 7, "old", labelled), 0, continueCanary, CanaryProgressing, names[7:8], ""},
		"by labels that nobody has":                {"somebody may get them", fresh, bySelector(), all("old"), 0, continueCanary, CanaryProgressing, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, action := row.was.follow(row.spec, row.resources, began.Add(row.after))
			if action != row.want || got.phase != row.phase || got.why != row.why {
				t.Errorf("%s: it is %s, action %d, because %q; want %s, %d, %q", row.reason, got.phase, action, got.why, row.phase, row.want, row.why)
			}
			var chosen []string
			for _, u := range row.resources {
				if got.selects(u) {
					chosen = append(chosen, u.Name)
				}
			}
			if diff := cmp.Diff(row.chosen, chosen); diff != "" {
				t.Errorf("%s: chosen (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}

func TestEachResourceOfACanaryHasADeadlineOfItsOwn(t *testing.T) {
	t.Parallel()
	names := byHash(2)
	// A moment is what the resources are at some time, and what becomes of the canary then.
	type moment struct {
		at            time.Duration
		first, second Resource
		want          canaryAction
	}
	is := func(at int, digest string, change ...func(*Resource)) Resource {
		return resource(names[at], digest, append([]func(*Resource){labelled}, change...)...)
	}
	since := func(d time.Duration) func(*Resource) { return func(u *Resource) { u.Changed = began.Add(d) } }
	none := is(1, "old", deleted)
	minute := time.Minute
	for name, row := range map[string]struct {
		reason string
		// restored says that the process has the canary from a status.
		restored bool
		moments  []moment
	}{
		"none is late": {"all have been ready for long", false, []moment{
			{0, is(0, "old"), none, continueCanary}, {minute, is(0, "new"), none, continueCanary}, {11 * minute, is(0, "new"), none, continueCanary},
		}},
		"one that is created after the deadline": {"it has just begun", false, []moment{
			{0, is(0, "old"), none, continueCanary}, {minute, is(0, "new"), none, continueCanary},
			{11 * minute, is(0, "new"), is(1, "old"), continueCanary},
			{12 * minute, is(0, "new"), is(1, "new", waiting), continueCanary},
			{20 * minute, is(0, "new"), is(1, "new", waiting), continueCanary},
			{21 * minute, is(0, "new"), is(1, "new", waiting), rollBackCanary},
		}},
		"one that is not reconciled": {"the queue says nothing about the content", false, []moment{
			{0, is(0, "old"), is(1, "old"), continueCanary}, {11 * minute, is(0, "new"), is(1, "old"), continueCanary}, {99 * minute, is(0, "new"), is(1, "old"), continueCanary},
		}},
		"one that its user edits after the deadline": {"it was ready with the content", false, []moment{
			{0, is(0, "old"), none, continueCanary}, {11 * minute, is(0, "new"), none, continueCanary},
			{12 * minute, is(0, "new", waiting, since(12*minute)), none, continueCanary},
			{20 * minute, is(0, "new", waiting, since(12*minute)), none, continueCanary},
			{21 * minute, is(0, "new", waiting, since(12*minute)), none, rollBackCanary},
		}},
		"one that says it has just changed": {"who writes a status may write any time", false, []moment{
			{0, is(0, "old"), none, continueCanary},
			{9 * minute, is(0, "new", waiting, since(9*minute)), none, continueCanary},
			{10 * minute, is(0, "new", waiting, since(10*minute)), none, rollBackCanary},
		}},
		"one that is known by its status alone": {"it has had the content since the canary began", false, []moment{
			{9 * minute, is(0, "new", waiting), none, continueCanary}, {10 * minute, is(0, "new", waiting), none, rollBackCanary},
		}},
		"one of a process that begins before the deadline": {"nobody knows how long the process before has been gone", true, []moment{
			{9 * minute, is(0, "new", waiting), none, continueCanary},
			{18 * minute, is(0, "new", waiting), none, continueCanary},
			{19 * minute, is(0, "new", waiting), none, rollBackCanary},
		}},
		"one of a process that begins after the deadline": {"nobody has reconciled it meanwhile, and it is late if that does not help", true, []moment{
			{60 * minute, is(0, "new", waiting), none, continueCanary},
			{69 * minute, is(0, "new", waiting), none, continueCanary},
			{70 * minute, is(0, "new", waiting), none, rollBackCanary},
		}},
		"a good one of a process that begins after the deadline": {"its condition is from before the outage until it is reconciled", true, []moment{
			{60 * minute, is(0, "new", waiting), none, continueCanary},
			{61 * minute, is(0, "new", since(61*minute)), none, continueCanary},
			{75 * minute, is(0, "new", since(61*minute)), none, continueCanary},
		}},
		"none that could be tried, in a process that begins after the deadline": {"somebody may become ready without the outage", true, []moment{
			{60 * minute, is(0, "old", waiting), is(1, "old", waiting), continueCanary},
			{69 * minute, is(0, "old", waiting), is(1, "old", waiting), continueCanary},
			{70 * minute, is(0, "old", waiting), is(1, "old", waiting), rollBackCanary},
		}},
		"one that was ready before a restart": {"its condition says until when", true, []moment{
			{11 * minute, is(0, "new", waiting, since(11*minute)), none, continueCanary},
			{20 * minute, is(0, "new", waiting, since(20*minute)), none, continueCanary},
			{21 * minute, is(0, "new", waiting, since(21*minute)), none, rollBackCanary},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := bySelector()
			spec.ReadyFor = &metav1.Duration{Duration: 100 * time.Hour}
			c := canary{digest: "new", from: "old", phase: CanaryProgressing, began: began, restored: row.restored}
			for _, m := range row.moments {
				var got canaryAction
				if c, got = c.follow(spec, []Resource{m.first, m.second}, began.Add(m.at)); got != m.want {
					t.Errorf("%s: after %s the action is %d, want %d: %q %v", row.reason, m.at, got, m.want, c.why, c.unready)
				}
			}
		})
	}
}

func TestAResourceThatIsChosenStaysChosenWhoeverComesAndGoes(t *testing.T) {
	t.Parallel()
	names := byHash(40)
	var some []Resource
	for i := 1; i < 40; i += 2 {
		some = append(some, resource(names[i], "old"))
	}
	c, _ := canary{digest: "new", from: "old", phase: CanaryProgressing, began: began}.follow(share("10%"), some, began)
	everybody := slices.Clone(some)
	for i := 0; i < 40; i += 2 {
		everybody = append(everybody, resource(names[i], "old"))
	}
	after, _ := c.follow(share("10%"), everybody, began)
	fewer, _ := after.follow(share("10%"), some[:2], began)
	for _, u := range some {
		if c.selects(u) != after.selects(u) || c.selects(u) != fewer.selects(u) {
			t.Errorf("%s was chosen: %v; with others: %v; without them: %v", u, c.selects(u), after.selects(u), fewer.selects(u))
		}
	}
	if n := c.total; n != 2 {
		t.Errorf("of 20 resources, %d are chosen", n)
	}
	gone, _ := c.follow(share("10%"), some[10:], began)
	if gone.total != 1 {
		t.Errorf("when all that were chosen are gone, %d of 10 are chosen in place of them", gone.total)
	}
	more, _ := c.follow(share("50%"), some, began)
	if more.total != 10 {
		t.Errorf("a greater share has %d of 20 resources", more.total)
	}
}

func TestAForgedStatusExtendsAndPromotesNoCanary(t *testing.T) {
	t.Parallel()
	names := byHash(10)
	var all []Resource
	for _, name := range names {
		all = append(all, resource(name, "old"))
	}
	for name, row := range map[string]struct {
		reason string
		forged map[string]any
		chosen []string
	}{
		"ready for years":     {"the time for which it has to be ready begins anew", map[string]any{"phase": "Ready", "since": "2001-01-01T00:00:00Z", "readySince": "2001-01-01T00:00:00Z", "resources": int64(1), "ready": int64(1)}, names[:1]},
		"all of them":         {"it is never more than the share", map[string]any{"upTo": "ffffffffffffffff"}, names[:1]},
		"none of them":        {"somebody has to try it", map[string]any{"upTo": "0000000000000000"}, names[:1]},
		"no number":           {"it counts as none", map[string]any{"upTo": "x"}, names[:1]},
		"another share":       {"the share of the spec counts", map[string]any{"share": "90%", "upTo": "ffffffffffffffff"}, names[:1]},
		"begun in the future": {"it has a deadline", map[string]any{"since": "2100-01-01T00:00:00Z"}, names[:1]},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			says := map[string]any{"digest": "new", "from": "old", "phase": "Progressing", "since": "2027-01-15T08:00:00Z", "share": "10%", "upTo": fmt.Sprintf("%016x", hashOf(types.UID(names[0])))}
			maps.Copy(says, row.forged)
			c := restoredCanary(Package{object: &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"canary": says}}}}, began)
			for _, u := range all {
				if c.selects(u) {
					t.Errorf("%s: %s would get the content by the status alone", row.reason, u)
				}
			}
			got, action := c.follow(share("10%"), all, began)
			if action == promoteCanary || got.began.After(began) {
				t.Errorf("%s: it is promoted, or began at %s", row.reason, got.began)
			}
			var chosen []string
			for i := range all {
				if got.selects(all[i]) {
					chosen = append(chosen, all[i].Name)
				}
			}
			if diff := cmp.Diff(row.chosen, chosen); diff != "" {
				t.Errorf("%s: chosen (-want +got):\n%s", row.reason, diff)
			}
			done := slices.Clone(all)
			done[0] = resource(names[0], "new")
			if _, action := c.follow(share("10%"), done, began.Add(time.Second)); action == promoteCanary {
				t.Errorf("%s: it is promoted after a second", row.reason)
			}
		})
	}
}

// canaried returns the spec of a Package with a canary of a third of its resources.
func canaried(spec map[string]any, more ...map[string]any) map[string]any {
	spec["canary"] = map[string]any{"share": "34%", "readyFor": "1m", "deadline": "10m"}
	for _, m := range more {
		maps.Copy(spec, m)
	}
	return spec
}

// reconciled has the resources of a site be as reconciles with the present versions leave them.
func (s *site) reconciled(canary ...func(*Resource)) {
	base := s.states["p"].served.Digest()
	for i := range s.resources {
		u := &s.resources[i]
		u.Ready, u.Failed, u.Reason, u.Changed = true, false, "Ready", s.now.Add(-time.Hour)
		if s.canary == nil || !s.canary.Selects(*u) {
			u.Digest = base
			continue
		}
		u.Digest = s.canary.Program.Digest()
		for _, f := range canary {
			f(u)
		}
	}
}

// pass has the resources be as reconciles leave them, and time pass.
func pass(d time.Duration, canary ...func(*Resource)) func(*site) {
	return func(s *site) { s.reconciled(canary...); s.now = s.now.Add(d) }
}

// fromMap has a canaried Package with a content of a name in a ConfigMap.
func fromMap(name string) func(*site) {
	return func(s *site) {
		u := &unstructured.Unstructured{Object: map[string]any{"data": text("Thing", name)["source"].(map[string]any)["inline"]}}
		u.SetUID("source")
		u.SetResourceVersion(name)
		s.maps["ns/source"] = u
		s.apply("p", canaried(inMap("source")))
	}
}

// inMap returns the spec of a Package whose content is in a ConfigMap.
func inMap(name string) map[string]any {
	return map[string]any{"source": map[string]any{"configMap": map[string]any{"namespace": "ns", "name": name}}}
}

func TestAContentGoesToAShareOfTheResourcesFirst(t *testing.T) {
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
	ready := turn{pass(time.Second), "False CanaryReady", nil}
	for name, row := range map[string]struct {
		reason string
		turns  []turn
	}{
		"a good one": {"the others follow once it has been ready for its time", []turn{
			begin, create, try, ready,
			{pass(30 * time.Second), "False CanaryReady", nil},
			{pass(30 * time.Second), "True Served", []string{"install", "swap Thing"}},
			{pass(time.Minute), "True Served", nil},
		}},
		"a bad one": {"it goes back, and stays away until the content changes", []turn{
			begin, create, try,
			{pass(time.Second, failing), "False CanaryRolledBack", []string{"canary ends", "install"}},
			{pass(time.Hour), "False CanaryRolledBack", nil},
			{func(s *site) { s.restart() }, "False CanaryRolledBack", []string{"install", "serve Thing outdated: "}},
			{apply(canaried(text("Thing", "c"))), "False CanaryProgressing", []string{"install", "canary " + first + " " + second}},
		}},
		"a bad one that a person wants": {"without a canary, all get it", []turn{
			begin, create, try,
			{pass(time.Second, failing), "False CanaryRolledBack", []string{"canary ends", "install"}},
			{apply(text("Thing", "b")), "True Served", []string{"install", "swap Thing"}},
			{func(s *site) {
				if said := s.states["p"].canaryStatus(); said != nil {
					s.t.Errorf("it says that it has gone back: %v", said)
				}
			}, "True Served", nil},
		}},
		"one that does not become ready": {"it goes back at the deadline", []turn{
			begin, create, try,
			{pass(9*time.Minute, waiting), "False CanaryProgressing", nil},
			{pass(time.Minute, waiting), "False CanaryRolledBack", []string{"canary ends", "install"}},
		}},
		"nobody to try it": {"it is taken over at once", []turn{
			begin, {apply(canaried(text("Thing", "b"))), "True Served", []string{"install", "swap Thing"}},
		}},
		"another content meanwhile": {"it replaces the canary", []turn{
			begin, create, try, ready,
			{apply(canaried(text("Thing", "c"))), "False CanaryProgressing", []string{"canary ends", "install", "canary " + first + " " + second}},
		}},
		"the content before meanwhile": {"the canary ends", []turn{
			begin, create, try, ready,
			{apply(canaried(text("Thing", "a"))), "True Served", []string{"canary ends", "install", "outdated: "}},
			{pass(time.Second), "True Served", nil},
			try,
		}},
		"a broken content meanwhile": {"what was tried is not in the source any more", []turn{
			begin, create, try, ready,
			{apply(canaried(map[string]any{"source": map[string]any{"inline": map[string]any{"main.cue": "package p\nx: {"}}})), "False PackageBroken", []string{"canary ends", "install", "outdated: main.cue:2" + sayswhy}},
		}},
		"a pause": {"what is served goes on, and so does the canary", []turn{
			begin, create, try, ready,
			{apply(canaried(text("Thing", "b"), map[string]any{"paused": true})), "False Paused", nil},
			{pass(time.Hour), "False Paused", nil},
			{apply(canaried(text("Thing", "b"))), "True Served", []string{"install", "swap Thing"}},
		}},
		"without approval": {"it waits before the canary", []turn{
			begin, create,
			{apply(canaried(text("Thing", "b"), map[string]any{"update": "Manual"})), "False AwaitingApproval", nil},
			{func(s *site) {
				s.apply("p", canaried(text("Thing", "b"), map[string]any{"update": "Manual", "approvedDigest": s.states["p"].content.digest()}))
			}, "False CanaryProgressing", []string{"install", "canary " + first + " " + second}},
			{apply(canaried(text("Thing", "b"), map[string]any{"update": "Manual"})), "False AwaitingApproval", []string{"canary ends", "install"}},
		}},
		"beyond its limits": {"not even the canary gets it", []turn{
			{apply(canaried(withLimits(text("Thing", "a"), map[string]any{"maxDelete": int64(1)}))), "True Served", []string{"install", "serve Thing"}},
			create,
			{func(s *site) {
				s.impact = Impact{Deleted: 2}
				s.apply("p", canaried(withLimits(text("Thing", "b"), map[string]any{"maxDelete": int64(1)})))
			}, "False LimitExceeded", []string{planned}},
			{func(s *site) { s.impact = Impact{}; s.now = s.now.Add(planAgain) }, "False CanaryProgressing", []string{planned, "install", "canary " + first + " " + second}},
			ready,
			{func(s *site) { s.impact = Impact{Deleted: 2}; s.reconciled(); s.now = s.now.Add(time.Minute) }, "False LimitExceeded", []string{planned}},
		}},
		"a restart in the middle": {"it goes on where it was, and its time begins anew", []turn{
			begin, create, try, ready,
			{func(s *site) { s.restart() }, "False CanaryReady", []string{"install", "serve Thing outdated: ", "canary " + first + " " + second}},
			{pass(30 * time.Second), "False CanaryReady", []string{"canary " + first + " " + second}},
			{pass(30 * time.Second), "False CanaryReady", nil},
			{pass(30 * time.Second), "True Served", []string{"install", "swap Thing"}},
		}},
		"a restart in a pause": {"it goes on with what was served", []turn{
			begin, create, try, ready,
			{func(s *site) { s.apply("p", canaried(text("Thing", "b"), map[string]any{"paused": true})); s.restart() }, "False Paused", []string{"install", "serve Thing outdated: ", "canary " + first + " " + second}},
		}},
		"a restart in which the check of the version before is ended": {"that says nothing about it, so nobody gets what is not proven", []turn{
			begin, create, try, ready,
			{func(s *site) { s.dying = s.states["p"].served.Digest(); s.restart() }, "False CanaryProgressing", nil},
			{later(time.Second), "False CanaryProgressing", nil},
			{func(s *site) { s.dying = ""; s.now = s.now.Add(examineAgain) }, "False CanaryReady", []string{"install", "serve Thing outdated: ", "canary " + first + " " + second}},
		}},
		"a restart with which the version before cannot be used any more": {"there is nothing to go back to, and a person decides", []turn{
			begin, create, try, ready,
			{func(s *site) { s.spoilt = s.states["p"].served.Digest(); s.restart() }, "False CanaryIncompatible", nil},
			{later(time.Hour), "False CanaryIncompatible", nil},
			{apply(text("Thing", "b")), "True Served", []string{"install", "serve Thing"}},
		}},
		"a bad one, and a restart in which the source cannot be read": {"it is the same content that comes back", []turn{
			{fromMap("a"), "True Served", []string{"install", "serve Thing"}},
			create,
			{fromMap("b"), "False CanaryProgressing", []string{"install", "canary " + first + " " + second}},
			{pass(time.Second, failing), "False CanaryRolledBack", []string{"canary ends", "install"}},
			{pass(time.Second), "False CanaryRolledBack", nil},
			{func(s *site) { delete(s.maps, "ns/source"); s.restart() }, "False SourceNotFound", []string{"install", "serve Thing outdated: SourceNotFound" + sayswhy}},
			{func(s *site) { s.restart() }, "False SourceNotFound", []string{"install", "serve Thing outdated: SourceNotFound" + sayswhy}},
			{fromMap("b"), "False CanaryRolledBack", []string{"outdated: "}},
			{fromMap("c"), "False CanaryProgressing", []string{"install", "canary " + first + " " + second}},
		}},
		"no canary any more": {"all get it at once", []turn{
			begin, create, try, ready, {apply(text("Thing", "b")), "True Served", []string{"install", "swap Thing"}},
		}},
		"a resource that becomes ready later": {"nothing else would have it reconciled", []turn{
			begin, create, try, ready,
			{func(s *site) { s.resources[0].Digest = "older" }, "False CanaryProgressing", []string{"reconcile " + first}},
		}},
		"a spec that is none": {"the definition may be older than the process", []turn{
			{apply(canaried(text("Thing", "a"), map[string]any{"canary": map[string]any{"share": "0%"}})), "False InvalidSpec", []string{"broken p: InvalidSpec" + sayswhy}},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.play(row.reason, row.turns)
			if strings.Contains(fmt.Sprint(s.get("p").Object["status"]), "CanaryProgressing") && s.states["p"].canary == nil {
				t.Error("it says that there is a canary, and there is none")
			}
		})
	}
}
