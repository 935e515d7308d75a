package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fleetOf returns resources by their versions, of which one that begins with ! is not Ready.
func fleetOf(phase string, digests ...string) fleet {
	f := fleet{before: []string{"a"}, phase: phase}
	for i, digest := range digests {
		var r resource
		r.Kind, r.Metadata.Name, r.Status.Phase = "WebApp", fmt.Sprint("small-", i+1), "Ready"
		if rest, waits := strings.CutPrefix(digest, "!"); waits {
			digest, r.Status.Phase = rest, "Waiting"
		}
		r.Status.Package.Digest = digest
		f.resources = append(f.resources, r)
	}
	return f
}

func TestAFleetShowsWhoIsSpared(t *testing.T) {
	want := `
Package/webapp  canary Progressing  1 new, 2 old
├─ WebApp/small-1  Ready  old
├─ WebApp/small-2  Waiting  new
└─ WebApp/small-3  Ready  old
`
	if diff := cmp.Diff(strings.Trim(want, "\n"), strings.Join(fleetOf("Progressing", "a", "!b", "a").draw(false), "\n")); diff != "" {
		t.Errorf("the drawing (-want +got):\n%s", diff)
	}
}

func TestACanaryIsSeenOnlyWhileOthersAreSpared(t *testing.T) {
	for name, tc := range map[string]struct {
		reason       string
		fleet        fleet
		tried, fails bool
		promoted     bool
		settled      bool
	}{
		"Before":    {"nobody has it yet", fleetOf("Progressing", "a", "a", "a", "a", "a"), false, false, false, true},
		"One":       {"a fifth of five is one", fleetOf("Progressing", "a", "!b", "a", "a", "a"), true, false, false, false},
		"OneReady":  {"it stays so for some time", fleetOf("Ready", "a", "b", "a", "a", "a"), true, false, true, false},
		"TwoOfFive": {"that is more than the share", fleetOf("Ready", "b", "b", "a", "a", "a"), false, true, true, false},
		"TwoOfSix":  {"a fifth of six is rounded up", fleetOf("Ready", "b", "b", "a", "a", "a", "a"), true, false, true, false},
		"All":       {"after the end there is no share", fleetOf("Promoted", "b", "b", "b", "b", "b"), false, false, true, true},
		"OneWaits":  {"each has to be Ready", fleetOf("Promoted", "b", "b", "b", "b", "!b"), false, false, true, false},
		"Back":      {"nobody has it any more", fleetOf("RolledBack", "a", "a", "a", "a", "a"), false, false, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			tried, err := tc.fleet.tried()
			if tried != tc.tried || (err != nil) != tc.fails {
				t.Errorf("%s: tried is %v, error %v", tc.reason, tried, err)
			}
			if got := tc.fleet.settled(tc.promoted); got != tc.settled {
				t.Errorf("%s: settled is %v", tc.reason, got)
			}
		})
	}
}

func TestAllResourcesOfTheKindAreInAFleet(t *testing.T) {
	c := fakeCluster(t, map[string]string{
		"/apis/example.com/v1": `{"resources": [{"name": "webapps", "kind": "WebApp", "namespaced": true}]}`,
		"/apis/example.com/v1/webapps": `{"items": [
			{"metadata": {"name": "z", "namespace": "a"}, "status": {"package": {"digest": "two"}}},
			{"metadata": {"name": "b", "namespace": "b"}, "status": {"package": {"digest": "one"}}},
			{"metadata": {"name": "a", "namespace": "b"}, "status": {"package": {"digest": "two"}}}]}`,
	})
	d := &demo{cluster: c}
	d.sampled.APIVersion, d.sampled.Kind = "example.com/v1", "WebApp"
	all, err := d.kindred(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range all {
		names = append(names, r.Kind+" "+r.Metadata.Namespace+"/"+r.Metadata.Name)
	}
	if diff := cmp.Diff([]string{"WebApp a/z", "WebApp b/a", "WebApp b/b"}, names); diff != "" {
		t.Errorf("the resources (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"one", "two"}, versions(all)); diff != "" {
		t.Errorf("their versions (-want +got):\n%s", diff)
	}
}
