package packages

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/cluster"
)

// pinning returns the spec of a Package whose resources may be pinned.
func pinning(spec map[string]any, more ...map[string]any) map[string]any {
	spec["revisionPins"] = "Allow"
	for _, m := range more {
		maps.Copy(spec, m)
	}
	return spec
}

// digestsOf applies contents one after the other, and returns their digests by their names.
func (s *site) digestsOf(names ...string) map[string]string {
	s.t.Helper()
	out := map[string]string{}
	for _, name := range names {
		s.apply("p", pinning(text("Thing", name)))
		if err := s.step("p"); err != nil {
			s.t.Fatal(err)
		}
		out[name] = s.states["p"].served.Digest()
	}
	s.take()
	return out
}

func TestWhichVersionsResourcesMayBePinnedTo(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		// do happens after the contents a, b and c were served; d is the digest of each.
		do     func(s *site, d map[string]string)
		loaded []string
		why    map[string]string
	}{
		"nobody is pinned":  {"no version is loaded for nobody", func(*site, map[string]string) {}, nil, map[string]string{"a": ""}},
		"one is":            {"its version is served", func(s *site, d map[string]string) { s.resources[0].Pin = d["a"] }, []string{"a"}, map[string]string{"a": "", "b": ""}},
		"to what is served": {"it is served already", func(s *site, d map[string]string) { s.resources[0].Pin = d["c"] }, nil, map[string]string{"c": ""}},
		"to nothing": {"it is said, and no version is loaded", func(s *site, _ map[string]string) { s.resources[0].Pin = "x" }, nil, map[string]string{
			"x": "operetta.dev/revision-pin names no revision that is kept; status.package.digest of a resource and spec.digest of a PackageRevision have such names",
		}},
		"two to two": {"both are served", func(s *site, d map[string]string) { s.resources[0].Pin, s.resources[1].Pin = d["a"], d["b"] }, []string{"a", "b"}, nil},
		"not any more": {"the version is forgotten", func(s *site, d map[string]string) {
			s.resources[0].Pin = d["a"]
			_ = s.step("p")
			s.resources[0].Pin = ""
		}, nil, map[string]string{"a": ""}},
		"after a restart": {"it is loaded again", func(s *site, d map[string]string) { s.resources[0].Pin = d["a"]; s.restart() }, []string{"a"}, map[string]string{"a": ""}},
		"to what cannot be used any more": {"it is said", func(s *site, d map[string]string) { s.resources[0].Pin, s.spoilt = d["a"], d["a"] }, nil, map[string]string{
			"a": "the revision that operetta.dev/revision-pin names cannot be used: it does not pass its checks any more",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.resources = []Resource{resource("one", ""), resource("two", "")}
			d := s.digestsOf("a", "b", "c")
			row.do(s, d)
			if err := s.step("p"); err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, name := range row.loaded {
				want = append(want, d[name])
			}
			slices.Sort(want)
			if diff := cmp.Diff(want, slices.Sorted(maps.Keys(s.pins.Programs))); diff != "" {
				t.Errorf("%s: loaded (-want +got):\n%s", row.reason, diff)
			}
			for name, why := range row.why {
				digest := name
				if d[name] != "" {
					digest = d[name]
				}
				if got := s.pins.Why(digest); got != why {
					t.Errorf("%s: %s: it says %q, want %q", row.reason, name, got, why)
				}
			}
		})
	}
}

func TestPinsCountOnlyWhereThePackageAllowsThem(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.resources = []Resource{resource("one", "")}
	d := s.digestsOf("a", "b")
	s.resources[0].Pin = d["a"]
	_ = s.step("p")
	if !s.pins.Allowed || s.pins.Programs[d["a"]] == nil {
		t.Fatalf("it is not pinned: %s", s.pins)
	}
	s.apply("p", text("Thing", "b"))
	_ = s.step("p")
	if s.pins.Allowed || len(s.states["p"].pinned) > 0 {
		t.Errorf("it is pinned, and the Package does not allow it: %s", s.pins)
	}
	s.restart()
	_ = s.step("p")
	if s.pins.Allowed {
		t.Errorf("after a restart it is pinned: %s", s.pins)
	}
}

func TestARevisionThatAResourceIsPinnedToIsKept(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		allow  string
		kept   bool
	}{
		"allowed": {"a resource has it", "Allow", true},
		"refused": {"the annotation has no effect", "Refuse", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.resources = []Resource{resource("one", "")}
			first := s.digestsOf("a")["a"]
			s.resources[0].Pin = first
			for i := range 4 {
				s.apply("p", pinning(text("Thing", fmt.Sprint("later", i)), map[string]any{"revisionHistoryLimit": int64(2), "revisionPins": row.allow}))
				_ = s.step("p")
			}
			all, err := s.memory.ListLive(t.Context(), cluster.Selection{Kind: RevisionKind})
			if err != nil {
				t.Fatal(err)
			}
			var digests []string
			for _, u := range all {
				digests = append(digests, u.GetAnnotations()[digestAnnotation])
			}
			if kept := slices.Contains(digests, first); kept != row.kept {
				t.Errorf("%s: it is kept: %v, among %v", row.reason, kept, digests)
			}
			want := 2
			if row.kept {
				want++
			}
			if len(digests) != want {
				t.Errorf("%s: %d revisions are kept, want %d", row.reason, len(digests), want)
			}
		})
	}
}

func TestNoMoreThanSomeVersionsAreServedBecauseOfPins(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var names []string
	for i := range maxPinned + 2 {
		names = append(names, fmt.Sprint("v", i))
	}
	d := s.digestsOf(names...)
	for _, name := range names {
		s.resources = append(s.resources, resource(name, "", func(u *Resource) { u.Pin = d[name] }))
	}
	_ = s.step("p")
	if n := len(s.pins.Programs); n != maxPinned {
		t.Errorf("%d versions are served, want %d", n, maxPinned)
	}
	if n := len(s.pins.Unusable); n != 1 {
		t.Errorf("%d versions are beyond the limit, want 1: %v", n, s.pins.Unusable)
	}
}

func TestTheRevisionsThatResourcesHaveAreServedBeforeThoseTheyAskFor(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		// change changes the resource that is pinned to the oldest revision; as many others as there are places ask for
		// later ones.
		change func(s *site, d map[string]string)
		served bool
	}{
		"it has it":                       {"nobody takes it away from it", func(s *site, d map[string]string) { s.resources[0].Digest = d["v0"] }, true},
		"it has it, after a restart":      {"it is not loaded, and yet in use", func(s *site, d map[string]string) { s.resources[0].Digest = d["v0"]; s.restart() }, true},
		"it asks for it as the others do": {"the newest come first", func(*site, map[string]string) {}, false},
		"two resources ask for it": {"more resources go before fewer", func(s *site, d map[string]string) {
			s.resources = append(s.resources, pinnedResource("second", d["v0"]))
		}, true},
		"it has another one than its pin": {"it has not got it", func(s *site, d map[string]string) { s.resources[0].Digest = d["v1"] }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			var names []string
			for i := range maxPinned + 2 {
				names = append(names, fmt.Sprint("v", i))
			}
			d := s.digestsOf(names...)
			for _, name := range names[:maxPinned+1] {
				s.resources = append(s.resources, pinnedResource(name, d[name]))
			}
			row.change(s, d)
			for range 3 {
				_ = s.step("p")
			}
			if served := s.pins.Programs[d["v0"]] != nil; served != row.served || len(s.pins.Programs) != maxPinned {
				t.Errorf("%s: it is served: %v, with %d in all: %v", row.reason, served, len(s.pins.Programs), s.pins.Unusable)
			}
		})
	}
}

func TestAPinThatCannotBeToldIsTriedAgainWhateverElseIsWrong(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.resources = []Resource{resource("one", "")}
	d := s.digestsOf("a", "b")
	s.resources[0].Pin = d["a"]
	s.unpinned = errors.New("the controller is away")
	s.apply("p", pinning(map[string]any{"source": map[string]any{"inline": map[string]any{"main.cue": "package p\nx: {"}}}))
	if err := s.step("p"); !errors.Is(err, s.unpinned) {
		t.Errorf("the error is %v, want %v: nothing would try it again", err, s.unpinned)
	}
	if got := s.ready("p"); got != "False PackageBroken" {
		t.Errorf("Ready is %s: the other problem is said", got)
	}
}

func TestARevisionThatIsServedKeepsItsPlaceWhenOthersAskForTheirs(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var names []string
	for i := range maxPinned + 2 {
		names = append(names, fmt.Sprint("v", i))
	}
	d := s.digestsOf(names...)
	s.resources = []Resource{pinnedResource("victim", d["v0"])}
	_ = s.step("p")
	for _, name := range names[1 : maxPinned+1] {
		s.resources = append(s.resources, pinnedResource(name, d[name]), pinnedResource(name+"too", d[name]))
	}
	_ = s.step("p")
	if s.pins.Programs[d["v0"]] == nil {
		t.Errorf("what is loaded lost its place to what more resources ask for: %v", s.pins.Unusable)
	}
}

// pinnedResource returns a resource that is pinned to a version, and has not got it.
func pinnedResource(name, digest string) Resource {
	return resource(name, "", func(u *Resource) { u.Pin = digest })
}

func TestAPinnedRevisionWhoseCheckIsEndedIsCheckedAgain(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.resources = []Resource{resource("one", "")}
	d := s.digestsOf("a", "b")
	s.resources[0].Pin, s.dying = d["a"], d["a"]
	_ = s.step("p")
	const ended = "the revision that operetta.dev/revision-pin names cannot be used: it could not be checked, which is tried again"
	if got := s.pins.Why(d["a"]); got != ended {
		t.Errorf("after a check that was ended it says %q, want %q", got, ended)
	}
	s.now = s.now.Add(examineAgain)
	_ = s.step("p")
	s.dying = ""
	s.now = s.now.Add(2*examineAgain - time.Second)
	_ = s.step("p")
	if got := s.pins.Why(d["a"]); got != ended {
		t.Errorf("before it is tried again it says %q, want %q: the second time it takes longer", got, ended)
	}
	s.now = s.now.Add(time.Second)
	_ = s.step("p")
	if s.pins.Programs[d["a"]] == nil {
		t.Errorf("it is not served once it can be checked: %s", s.pins)
	}
}

// defines has the status of contents with a name contain a field of a type, and that of all others none.
func (s *site) defines(types map[string]string) {
	s.definitionOf = func(text string) *definition {
		for name, kind := range types {
			if strings.Contains(text, strconv.Quote(name)) {
				return defined(s.t, objectOf(""), objectOf(`"x":{"type":"`+kind+`"}`))
			}
		}
		return defined(s.t, objectOf(""), objectOf(""))
	}
}

func TestNoCanaryMakesTheStatusOfAPinnedResourceUnwritable(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		types  map[string]string
		pin    string
		// restart says that a process begins after the content c has come.
		restart bool
		want    string
	}{
		"another form":                  {"the one who is pinned could not report", map[string]string{"a": "integer", "c": "string"}, "a", false, "False CanaryIncompatible"},
		"another form, after a restart": {"what is pinned is loaded first", map[string]string{"a": "integer", "c": "string"}, "a", true, "False CanaryIncompatible"},
		"the same form":                 {"both can report", map[string]string{"a": "integer", "c": "integer"}, "a", false, "False CanaryProgressing"},
		"nobody is pinned":              {"there is nobody whom it could harm", map[string]string{"a": "integer", "c": "string"}, "", false, "False CanaryProgressing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.defines(row.types)
			d := s.digestsOf("a", "b")
			s.resources = []Resource{resource("one", d["b"]), resource("pinned", d["a"], func(u *Resource) { u.Pin = d[row.pin] })}
			_ = s.step("p")
			s.apply("p", pinning(canaried(text("Thing", "c"))))
			if row.restart {
				s.restart()
			}
			for range 3 {
				_ = s.step("p")
			}
			if got := s.ready("p"); got != row.want {
				t.Errorf("%s: Ready is %s, want %s", row.reason, got, row.want)
			}
			if why := s.pins.Why(d[row.pin]); row.pin != "" && why != "" {
				t.Errorf("%s: the pin cannot be used: %s", row.reason, why)
			}
		})
	}
}

func TestOfRevisionsThatContradictEachOtherOnlyOneIsServedBesides(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		reason string
		types  map[string]string
		// canary says that the content d is tried by a canary before the second resource is pinned.
		canary bool
	}{
		"two pins":         {"the status of one of them could not be written", map[string]string{"a": "integer", "b": "string"}, false},
		"a pin and canary": {"the status of one of them could not be written", map[string]string{"a": "integer", "d": "string"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.defines(row.types)
			d := s.digestsOf("a", "b", "c")
			s.resources = []Resource{resource("one", d["c"]), resource("two", d["c"]), resource("three", d["c"])}
			want := 1
			if row.canary {
				s.apply("p", pinning(canaried(text("Thing", "d"))))
				_ = s.step("p")
				s.resources[2].Pin, want = d["a"], 0
			} else {
				s.resources[0].Pin, s.resources[1].Pin = d["a"], d["b"]
			}
			_ = s.step("p")
			if len(s.pins.Programs) != want || len(s.pins.Unusable) != 1 {
				t.Errorf("%s: %d revisions are served, want %d: %v", row.reason, len(s.pins.Programs), want, s.pins.Unusable)
			}
		})
	}
}
