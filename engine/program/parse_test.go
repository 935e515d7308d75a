package program_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"operetta.dev/engine/program"
	"operetta.dev/engine/source"
)

func TestWhatDoesNotParseQuotesNoValue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"a text":   {`x: (1 "opensesame")`, "found 'STRING' ..."},
		"a number": {`x: (1 471174)`, "found 'INT' ..."},
		"a name":   {`x: (1 sesame)`, "found 'IDENT' sesame"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := fstest.MapFS{"shop/shop.cue": &fstest.MapFile{Data: []byte("package shop\n" + c.text + "\n")}}
			snapshot, err := source.Loader{}.Module("shop", "", "shop", files)
			if err != nil {
				t.Fatal(err)
			}
			_, err = program.Load(snapshot)
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "opensesame") || strings.Contains(err.Error(), "471174") {
				t.Errorf("it says %v, want %s", err, c.want)
			}
		})
	}
}
