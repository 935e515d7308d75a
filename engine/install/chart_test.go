package install

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTemplatesHaveExpressionsInPlaceOfWhatAReleaseDecides(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ reason, manifest, want string }{
		"Alone":    {"a namespace may be named 123, which is a number in YAML", "a: " + releaseNamespace + "\n- " + releaseName + "\n", "a: {{ .Release.Namespace | quote }}\n- {{ .Release.Name | quote }}\n"},
		"Within":   {"quotes within a text would be part of it", "a: x:" + releaseNamespace + ":" + releaseName + "\n", "a: x:{{ .Release.Namespace }}:{{ .Release.Name }}\n"},
		"Number":   {"it is a number, not a text", "replicas: 1947483647\n", "replicas: {{ .Values.replicas }}\n"},
		"Optional": {"Helm refuses the definitions that another release owns", "a: 1\n---\n" + OptionalDocument("b: 2\n") + "---\nc: 3\n", "a: 1\n---\n{{- if .Values.crds }}\nb: 2\n{{- end }}\n---\nc: 3\n"},
		"Braces":   {"a package may contain what looks like an expression", "a: '{{ .Values.image }}'\n", "a: '{{ \"{{\" }} .Values.image }}'\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, template(tc.manifest)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
