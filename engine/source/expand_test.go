package source_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"operetta.dev/engine/source"
)

const several = `
-- cue/a/a.cue --
package a

import "operetta.dev/schemas/operator"

operator.#Controller
-- cue/b/one.cue --
package b
-- cue/b/two.cue --
package b

import contract "operetta.dev/schemas/operator@v0"

contract.#Controller
-- cue/broken/c.cue --
package c

import "operetta.dev/schemas/operator"

operator.#Controller

x: {
-- cue/lib/lib.cue --
package lib

import "operetta.dev/schemas/operator"

#Base: operator.#Controller
-- cue/lib/other.cue --
package lib

import operator "elsewhere.example/operator"

operator.#Controller
-- cue/testdata/t.cue --
package t

import "operetta.dev/schemas/operator"

operator.#Controller
-- cue/_old/o.cue --
package o

import "operetta.dev/schemas/operator"

operator.#Controller
-- empty/readme.txt --
nothing
`

// expansions are patterns and the folders that they name, below one folder.
var expansions = map[string]struct {
	reason   string
	patterns []string
	want     []string
	err      string
}{
	"a folder stands for itself": {
		"also one that is no package: what is wrong with it is said later",
		[]string{"cue/lib"}, []string{"cue/lib"}, "",
	},
	"dots stand for every package below": {
		"also a broken one; not libraries, test data and hidden folders",
		[]string{"cue/..."}, []string{"cue/a", "cue/b", "cue/broken"}, "",
	},
	"dots stand for the folder itself as well": {
		"a package may be where one stands",
		[]string{"cue/a/..."}, []string{"cue/a"}, "",
	},
	"what is named twice is there once": {
		"patterns may overlap",
		[]string{"cue/b", "./cue/a/", "cue/..."}, []string{"cue/a", "cue/b", "cue/broken"}, "",
	},
	"a folder that is not there": {
		"a typo on the command line",
		[]string{"cue/nope"}, nil, "package cue/nope: stat cue/nope: no such file or directory",
	},
	"a file": {
		"packages are folders",
		[]string{"cue/a/a.cue"}, nil, "package cue/a/a.cue: not a folder; name the folder that holds the package",
	},
	"dots where there is nothing": {
		"an engine without packages does nothing, forever",
		[]string{"empty/..."}, nil, "no operator package below empty: a package embeds operator.#Controller at its root",
	},
	"dots below what is not there": {
		"a typo on the command line",
		[]string{"nope/..."}, nil, "looking for packages below nope: lstat nope: no such file or directory",
	},
}

func TestExpand(t *testing.T) {
	t.Parallel()
	dir := onDisk(t, several)
	for name, c := range expansions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var patterns []string
			for _, p := range c.patterns {
				patterns = append(patterns, dir+"/"+p)
			}
			got, err := source.Expand(patterns)
			for i, g := range got {
				rel, relErr := filepath.Rel(dir, g)
				if relErr != nil {
					t.Fatal(relErr)
				}
				got[i] = filepath.ToSlash(rel)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.reason, diff)
			}
			text := ""
			if err != nil {
				text = strings.ReplaceAll(err.Error(), dir+"/", "")
			}
			if text != c.err {
				t.Errorf("%s\nwant %s\ngot  %s", c.reason, c.err, text)
			}
		})
	}
}
