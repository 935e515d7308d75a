package packages

import (
	stdcmp "cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/crd"
)

// Hold implements Holds.
func (s *site) Hold(kind schema.GroupKind) { s.callf("hold %s", kind.Kind) }

// Release implements Holds. What is said is what resources are reconciled with from then on.
func (s *site) Release(kind schema.GroupKind) {
	s.callf("release %s with %s", kind.Kind, stdcmp.Or(s.serving(), "nothing"))
}

// standby returns a process that stands by for a site.
func (s *site) standby() *site {
	out := s.follower()
	out.Holds = out
	return out
}

// lead has a process that stood by lead from now on, and take the Package p as far as it goes. One that begins resumes a canary with its
// first step, and counts its resources with the next one.
func (s *site) lead(at *site) error {
	s.Cluster, s.Revisions, s.Recorder, s.Followed = s.memory, s.memory, s, true
	s.now, s.resources = at.now, at.resources
	_ = s.step("p")
	return s.step("p")
}

// released returns what the calls of the Server since the last time have released.
func (s *site) released() []string {
	var out []string
	for _, call := range s.take() {
		if of, ok := strings.CutPrefix(call, "release Thing with "); ok && of != "nothing" {
			out = append(out, of)
		}
	}
	return out
}

// serving identifies the versions that a process has of the Package p.
func (s *site) serving() string {
	st := s.states["p"]
	if st == nil || st.served == nil {
		return ""
	}
	out := st.served.Digest()
	if st.servedCanary != nil {
		out += " and " + st.servedCanary.candidate.Program.Digest()
	}
	return out
}

// A followed is how far a process has followed when the one that decides dies.
type followed string

// How far a process may have followed.
const (
	followedAll     followed = "all was followed"
	followedLess    followed = "the last step was not followed"
	followedUnsaid  followed = "the last step was not said in the status"
	followedNothing followed = "nothing was followed"
)

// succession plays a history, and returns a process that stands by then, and what the process that decided has served.
func succession(t *testing.T, steps []func(*site), how followed) (dead, next *site, was string) {
	t.Helper()
	s := newFollowedSite(t)
	next = s.standby()
	follow := func() {
		next.now, next.resources = s.now, s.resources
		if err := next.follow("p"); err != nil {
			t.Fatal(err)
		}
	}
	for i, step := range steps {
		last := i == len(steps)-1
		var said any
		if u, err := s.memory.GetLive(t.Context(), cluster.Ref{GroupVersionKind: Kind, Name: "p"}); err == nil && u != nil {
			said = u.Object["status"]
		}
		step(s)
		_ = s.step("p") // an error is in the status
		if last && how == followedUnsaid && said != nil {
			if u, err := s.memory.GetLive(t.Context(), cluster.Ref{GroupVersionKind: Kind, Name: "p"}); err == nil && u != nil {
				s.put(u, said, "status")
			}
		}
		if how == followedAll || how != followedNothing && !last {
			follow()
		}
	}
	return s, next, s.serving()
}

// However far a process has followed when it comes to lead, it serves what one does that begins then, and no resource gets anything else
// in between.
func TestWhoTakesOverServesWhatOneDoesThatBegins(t *testing.T) {
	t.Parallel()
	for name, all := range histories() {
		for n := range all {
			for _, how := range []followed{followedAll, followedLess, followedUnsaid, followedNothing} {
				t.Run(fmt.Sprintf("%s, %d of %d: %s", name, n+1, len(all), how), func(t *testing.T) {
					t.Parallel()
					dead, begins, was := succession(t, histories()[name][:n+1], how)
					if begins.states["p"] != nil && begins.states["p"].served != nil && !strings.Contains(strings.Join(begins.take(), "\n"), "hold ") {
						t.Error("what stands by is not held")
					}
					_, other, _ := succession(t, histories()[name][:n+1], how)
					other.restart()
					wrong, expected := begins.lead(dead), other.lead(dead)
					if (wrong == nil) != (expected == nil) {
						t.Errorf("it errs with %v, and one that begins with %v", wrong, expected)
					}
					if diff := cmp.Diff(other.serves("p"), begins.serves("p")); diff != "" {
						t.Errorf("(-begins +takes over):\n%s", diff)
					}
					for _, of := range begins.released() {
						if how == followedUnsaid { // nobody else knows of a canary that the status does not tell of
							of, _, _ = strings.Cut(of, " and ")
							was, _, _ = strings.Cut(was, " and ")
						}
						if of != was {
							t.Errorf("resources got %s, while the process before had %s", of, was)
						}
					}
					if st := begins.states["p"]; st != nil && (st.follows || st.served != nil && !st.isDefined()) {
						t.Errorf("it has not taken over: %+v", st)
					}
				})
			}
		}
	}
}

// What was followed to the end is served without another check, and is never withdrawn: reviews go on.
func TestWhatWasFollowedIsTakenOverAsItIs(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		reason string
		after  func(*site)
		want   []string
	}{
		"all": {"it is what was decided last", func(*site) {}, []string{"release Thing with a", "install", "outdated: "}},
		"not the last revision": {"a resource that has it must not go back", func(s *site) { s.decide(text("Thing", "b")) },
			[]string{"withdraw Thing", "install", "release Thing with nothing", "serve Thing"}},
		"the revisions are gone": {"what is served was accepted by nobody", func(s *site) {
			for _, u := range s.revisionsOf(crd.PackageLabel) {
				if err := s.memory.Delete(s.t.Context(), cluster.RefOf(u), u.GetUID()); err != nil {
					s.t.Fatal(err)
				}
			}
		}, []string{"withdraw Thing", "install", "release Thing with nothing", "serve Thing"}},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newFollowedSite(t)
			f := s.standby()
			s.decide(text("Thing", "a"))
			s.expectFollows("at first", f)
			a := f.serving()
			if diff := cmp.Diff([]string{"hold Thing", "serve Thing"}, f.take()); diff != "" {
				t.Errorf("while it stands by (-want +got):\n%s", diff)
			}
			row.after(s)
			if err := f.lead(s); err != nil {
				t.Fatal(err)
			}
			got := f.take()
			for i := range got {
				got[i] = strings.ReplaceAll(got[i], a, "a")
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}

// While nobody can say what was decided last, no resource is reconciled with what was followed.
func TestATakeoverThatCannotReadWhatWasDecidedIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := newFollowedSite(t)
	f := s.standby()
	s.decide(text("Thing", "a"))
	s.expectFollows("at first", f)
	f.take()
	if err := f.lead(s); err != nil {
		t.Fatal(err)
	}
	g := s.standby()
	s.expectFollows("another one", g)
	g.take()
	g.Cluster, g.Recorder, g.Revisions = s.memory, g, unlisted{s.memory}
	if err := g.step("p"); err == nil || len(g.take()) > 0 {
		t.Errorf("it goes on with what it cannot confirm: %v", err)
	}
	g.Revisions = s.memory
	if err := g.step("p"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{g.serving()}, g.released()); diff != "" {
		t.Errorf("released (-want +got):\n%s", diff)
	}
}

// A Package that a process has followed counts as tried only once it leads: a resource whose package is missing is torn down after that.
func TestWhatIsFollowedByAStandbyIsNotTriedYet(t *testing.T) {
	t.Parallel()
	s := newFollowedSite(t)
	f := s.standby()
	s.decide(text("Thing", "a"))
	f.Begun.Expect([]string{"p"})
	select {
	case <-f.Begun.All():
		t.Error("it has been followed before it was")
	default:
	}
	s.expectFollows("at first", f)
	select {
	case <-f.Begun.All():
	default:
		t.Error("it has not been followed")
	}
	f.Await()
	f.Expect([]string{"p"})
	select {
	case <-f.Loaded():
		t.Fatal("it has been tried")
	default:
	}
	if err := f.lead(s); err != nil {
		t.Fatal(err)
	}
	select {
	case <-f.Loaded():
	default:
		t.Error("it has not been tried")
	}
}
