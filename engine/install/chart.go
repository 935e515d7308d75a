package install

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"operetta.dev/engine/rbac"
)

// The values that stand in manifests for what is known when a chart is installed. They are valid names, so
// that the objects with them are valid.
const (
	releaseName      = "operetta-release-id"
	releaseNamespace = "operetta-release-namespace"
	chartImage       = "operetta-chart-image"
	chartReplicas    = 1_947_483_647
)

// ForChart returns options whose objects become the templates of a Helm chart: the service account, and so
// the Deployment, is named after the release, and runs in its namespace.
func (o Options) ForChart() Options {
	o.Options = ChartRights(o.Options)
	o.Image, o.Replicas = chartImage, chartReplicas
	return o
}

// ChartRights returns the options of roles for the templates of a chart.
func ChartRights(o rbac.Options) rbac.Options {
	o.OperatorNamespace, o.ServiceAccount, o.LeaderElectionID = releaseNamespace, releaseName, releaseName
	return o
}

// KeepAnnotation makes Helm leave an object behind: with the definition of a kind go all resources of it.
const KeepAnnotation = "helm.sh/resource-policy"

// Optional returns a document of a template that the release has only if its value crds is true. The engine's
// own kinds are those of all releases, and Helm refuses what another release owns.
func Optional(document string) string {
	return optionalBegin + "\n" + document + optionalEnd + "\n"
}

// The lines around a document that is optional; template replaces them by expressions.
const (
	optionalBegin = "# operetta-chart-crds-begin"
	optionalEnd   = "# operetta-chart-crds-end"
)

// alone is a value that is the whole of a YAML scalar. A name may be 123, so it is quoted.
var alone = regexp.MustCompile(`(?m)(: |- )(` + releaseName + `|` + releaseNamespace + `|` + chartImage + `)$`)

// references are the expressions of templates for the values that stand for them.
var references = map[string]string{
	releaseName: ".Release.Name", releaseNamespace: ".Release.Namespace", chartImage: ".Values.image",
}

// template returns a manifest as a template of a chart.
func template(manifest string) string {
	text := strings.ReplaceAll(manifest, "{{", `{{ "{{" }}`) // a package may contain that
	text = alone.ReplaceAllStringFunc(text, func(match string) string {
		at := alone.FindStringSubmatch(match)
		return at[1] + "{{ " + references[at[2]] + " | quote }}"
	})
	for value, reference := range references {
		text = strings.ReplaceAll(text, value, "{{ "+reference+" }}")
	}
	text = strings.ReplaceAll(text, "\n"+optionalBegin+"\n", "\n{{- if .Values.crds }}\n")
	text = strings.ReplaceAll(text, "\n"+optionalEnd+"\n", "\n{{- end }}\n")
	return strings.ReplaceAll(text, strconv.Itoa(chartReplicas), "{{ .Values.replicas }}")
}

// Chart returns the files of a Helm chart by their names. manifests are the files with objects of ForChart, each
// with its documents. o has the defaults.
func Chart(manifests map[string][]string, o Options) map[string]string {
	out := map[string]string{
		"Chart.yaml": `apiVersion: v2
name: operetta
description: An operator of packages in CUE
type: application
version: 0.1.0
kubeVersion: ">=1.30.0-0"
`,
		"values.yaml": fmt.Sprintf(`# The image of the operator.
image: %q
# The number of processes; one acts, the others stand by.
replicas: %d
# Whether the definitions of the engine's own kinds, such as Patch, are part of the release.
# One release of a cluster has them; set it to false for the others.
crds: true
`, o.Image, o.Replicas),
	}
	for name, documents := range manifests {
		out["templates/"+name] = "# Printed by operetta install --chart; do not edit.\n" + strings.TrimPrefix(template("\n"+strings.Join(documents, "---\n")), "\n")
	}
	return out
}
