package program_test

import (
	"strings"
	"testing"
	"time"

	"operetta.dev/engine/program"
	"operetta.dev/test/inline"
	"operetta.dev/test/machine"
)

func TestWhatTheAdministratorSetsIsFoundWhereverItIsMarked(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		text   string
		locked []string
		free   []string
	}{
		"a field":                     {`config: {image: string @config(admin), colour?: string}`, []string{"image"}, []string{"colour"}},
		"a struct":                    {`config: pod: {@config(admin), image?: string}`, []string{"pod", "pod.image"}, nil},
		"a definition":                {`config: #C` + "\n" + `#C: {image?: string @config(admin), colour?: string}`, []string{"image"}, []string{"colour"}},
		"a definition that is joined": {`config: #C & {more?: string}` + "\n" + `#C: {image?: string @config(admin), more?: _}`, []string{"image"}, []string{"more"}},
		"one that is embedded":        {`config: {#C, more?: string}` + "\n" + `#C: {image?: string @config(admin)}`, []string{"image"}, []string{"more"}},
		"one of two":                  {`config: at: #A | #B` + "\n" + `#A: {a?: string @config(admin)}` + "\n" + `#B: {b?: string}`, []string{"at.a"}, []string{"at.b"}},
		"a condition":                 {`config: {if 1 < 2 {image?: string @config(admin)}, colour?: string}`, []string{"image"}, []string{"colour"}},
		"a map":                       {`config: [string]: {image?: string @config(admin), colour?: string}`, []string{"x.image"}, []string{"x.colour"}},
		"a list":                      {`config: pods?: [...{image?: string @config(admin), colour?: string}]`, []string{"pods.0.image"}, []string{"pods.0.colour"}},
		"apart from the field":        {`config: image?: string` + "\n" + `config: image?: _ @config(admin)`, []string{"image"}, nil},
		"a hidden field":              {`config: pod: _pod` + "\n" + `_pod: {image?: string @config(admin), colour?: string}`, []string{"pod.image"}, []string{"pod.colour"}},
		"a definition within itself":  {`config: #C` + "\n" + `#C: {below?: #C, image?: string @config(admin), colour?: string}`, []string{"image", "below.image", "below.below.below.image"}, []string{"colour"}},
		"the same definition twice":   {`config: {a?: #C, b?: c?: #C}` + "\n" + `#C: {image?: string @config(admin), colour?: string}`, []string{"a.image", "b.c.image"}, []string{"a.colour", "b.c.colour"}},
	}
	for name, row := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := compile(t, row.text+"\ncomponents: web: verify: it: true\n")
			for _, path := range row.locked {
				if !p.Config().Locked(strings.Split(path, ".")) {
					t.Errorf("%s is not locked", path)
				}
			}
			for _, path := range row.free {
				if p.Config().Locked(strings.Split(path, ".")) {
					t.Errorf("%s is locked", path)
				}
			}
		})
	}
}

// A tree has no end, and two branches at each place double what there is to look at.
func TestConfigurationThatIsATreeLoads(t *testing.T) {
	t.Parallel()
	for name, mark := range map[string]string{"without a mark": "", "with one": "@config(admin)"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := head + "config: tree: #Tree\n#Tree: {a?: #Tree, b?: #Tree, c?: #Tree, d?: [...#Tree], v?: string " + mark + "}\ncomponents: web: verify: it: true\n"
			machine.ExpectProcessorTime(t, 10*time.Second, func() {
				if _, err := program.Load(inline.Snapshot(t, text)); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}
