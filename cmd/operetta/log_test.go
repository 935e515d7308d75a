package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheLogHasWhatItsLevelSays(t *testing.T) {
	t.Parallel()
	rows := map[string]struct {
		reason, level string
		want          []string
	}{
		"info":  {"one line for each thing that happens", "info", []string{"happened", "failed"}},
		"debug": {"what a step finds out, too, but nothing of the libraries' insides", "debug", []string{"happened", "found", "failed"}},
		"error": {"only what a person should look at", "error", []string{"failed"}},
	}
	for name, row := range rows {
		for _, format := range []string{"text", formatJSON} {
			t.Run(name+" as "+format, func(t *testing.T) {
				t.Parallel()
				var out bytes.Buffer
				log := logFlags{format, row.level}.open(streams{err: &out})
				log.Info("happened", "Shop", "town/corner")
				log.V(1).Info("found", "Shop", "town/corner")
				log.V(4).Info("inside")
				log.Error(errors.New("why"), "failed", "Shop", "town/corner")
				var got []string
				for line := range strings.Lines(out.String()) {
					_, message, _ := strings.Cut(line, "msg=")
					message, _, _ = strings.Cut(message, " ")
					if format == formatJSON {
						var m map[string]any
						if err := json.Unmarshal([]byte(line), &m); err != nil {
							t.Fatal(err)
						}
						message, _ = m["msg"].(string)
					}
					got = append(got, message)
					if !strings.Contains(line, "town/corner") {
						t.Errorf("the line has no object: %s", line)
					}
				}
				if diff := cmp.Diff(row.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", row.reason, diff)
				}
			})
		}
	}
}

func TestALevelThatThereIsNotIsAUsageError(t *testing.T) {
	t.Parallel()
	cmd := newRoot(streams{out: &bytes.Buffer{}, err: &bytes.Buffer{}})
	cmd.SetArgs([]string{"run", "--log-level=loud"})
	var usage usageError
	if err := cmd.Execute(); !errors.As(err, &usage) || !strings.Contains(err.Error(), "info, debug, error") {
		t.Errorf("the error is %v", err)
	}
}
