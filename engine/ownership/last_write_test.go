package ownership_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"operetta.dev/engine/ownership"
)

func TestTheNewestWriteIsThatOfSomebodyElse(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	entry := func(manager string, second int, fields string) string {
		return `{manager: ` + manager + `, operation: Update, time: "` + at.Add(time.Duration(second)*time.Second).Format(time.RFC3339) +
			`", fieldsType: FieldsV1, apiVersion: v1, fieldsV1: {` + fields + `}}`
	}
	write := func(manager string, second int, more int, fields ...string) *ownership.LastWrite {
		return &ownership.LastWrite{Manager: manager, Operation: "Update", Time: at.Add(time.Duration(second) * time.Second), Fields: fields, More: more}
	}
	for name, row := range map[string]struct {
		reason, kind string
		managers     []string
		want         *ownership.LastWrite
	}{
		"nobody":                    {"there is no write", "ConfigMap", nil, nil},
		"the engine alone":          {"its own writes are no news", "ConfigMap", []string{entry("operetta", 1, "f:data: {f:a: {}}")}, nil},
		"the engine wrote later":    {"its own writes are no news", "ConfigMap", []string{entry("kubectl", 1, "f:data: {f:a: {}}"), entry("operetta", 2, "f:data: {f:b: {}}")}, write("kubectl", 1, 0, "data.a")},
		"the first one wrote later": {"the time counts, not the place", "ConfigMap", []string{entry("kubectl", 2, "f:data: {f:a: {}}"), entry("helm", 1, "f:data: {f:b: {}}")}, write("kubectl", 2, 0, "data.a")},
		"the last one wrote later":  {"the time counts, not the place", "ConfigMap", []string{entry("kubectl", 1, "f:data: {f:a: {}}"), entry("helm", 2, "f:data: {f:b: {}}")}, write("helm", 2, 0, "data.b")},
		"no time":                   {"nobody knows when it was", "ConfigMap", []string{`{manager: kubectl, operation: Update, fieldsType: FieldsV1, apiVersion: v1, fieldsV1: {f:data: {f:a: {}}}}`}, nil},
		"no fields":                 {"it is a write all the same", "ConfigMap", []string{`{manager: kubectl, operation: Update, time: "` + at.Add(time.Second).Format(time.RFC3339) + `", apiVersion: v1}`}, write("kubectl", 1, 0)},
		"as many fields as fit":     {"all are told", "ConfigMap", []string{entry("kubectl", 1, "f:data: {f:a: {}, f:b: {}}")}, write("kubectl", 1, 0, "data.a", "data.b")},
		"many fields":               {"the rest is counted", "ConfigMap", []string{entry("kubectl", 1, "f:data: {f:a: {}, f:b: {}, f:c: {}, f:d: {}}")}, write("kubectl", 1, 2, "data.a", "data.b")},
		"an item of a set":          {"its value is not told, but the list is", "ConfigMap", []string{entry("kubectl", 1, `f:metadata: {f:finalizers: {'v:"example.com/secret"': {}}}`)}, write("kubectl", 1, 0, "metadata.finalizers")},
		"a Secret":                  {"the names of its keys are nobody's business", "Secret", []string{entry("kubectl", 1, "f:data: {f:password: {}}")}, write("kubectl", 1, 0, "data.[***]")},
		"a Secret in plain text":    {"the names of its keys are nobody's business", "Secret", []string{entry("kubectl", 1, "f:stringData: {f:password: {}}")}, write("kubectl", 1, 0, "stringData.[***]")},
		"what else a Secret has":    {"only its content is secret", "Secret", []string{entry("kubectl", 1, "f:metadata: {f:annotations: {f:data: {}}}, f:type: {}")}, write("kubectl", 1, 0, "type", "metadata.annotations.data")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := fromYAML(t, `{apiVersion: v1, kind: `+row.kind+`, metadata: {name: a, managedFields: [`+strings.Join(row.managers, ",")+`]}}`)
			got, found := ownership.NewestWrite(live, 2)
			if found != (row.want != nil) {
				t.Fatalf("%s: a write was found: %t, %+v", row.reason, found, got)
			}
			if !found {
				return
			}
			if diff := cmp.Diff(*row.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", row.reason, diff)
			}
		})
	}
}
