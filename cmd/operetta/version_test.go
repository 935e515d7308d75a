package main

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestProductVersion(t *testing.T) {
	commit := []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}}
	for name, c := range map[string]struct {
		reason  string
		release string
		info    *debug.BuildInfo
		want    string
	}{
		"Release":  {"the build of a release says so", "v1.2.3", &debug.BuildInfo{Settings: commit}, "v1.2.3"},
		"Module":   {"go install knows the version", "", &debug.BuildInfo{Main: debug.Module{Version: "v0.4.0"}}, "v0.4.0"},
		"Checkout": {"a commit is better than nothing", "", &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: commit}, "devel abc"},
		"Folder":   {"there may be no version control", "", &debug.BuildInfo{}, "devel"},
		"Stripped": {"there may be no information", "", nil, "unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			defer func(old string) { version = old }(version)
			version = c.release
			if got := productVersion(c.info); got != c.want {
				t.Errorf("%s: got %q, want %q", c.reason, got, c.want)
			}
		})
	}
}

func TestCUEVersionIsTheModulesWhereItIsKnown(t *testing.T) {
	info := &debug.BuildInfo{Deps: []*debug.Module{{Path: "other", Version: "v1.0.0"}, {Path: "cuelang.org/go", Version: "v0.17.9"}}}
	if got := cueVersion(info); got != "v0.17.9" {
		t.Errorf("got %q, want the version of the module", got)
	}
	if got := cueVersion(nil); !strings.HasPrefix(got, "v0.") {
		t.Errorf("got %q, want the version of the language", got)
	}
}

func TestTheContractHasOneDigest(t *testing.T) {
	first, err := contractDigest()
	if err != nil {
		t.Fatal(err)
	}
	second, err := contractDigest()
	if err != nil || first != second || len(first) != len("sha256:")+64 {
		t.Errorf("got %q and then %q (%v), want the same digest", first, second, err)
	}
}
