package install

import (
	"fmt"
	"regexp"
	"slices"
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

// OptionalDocument returns a document of a template that the release has only if its value crds is true. The engine's
// own kinds are those of all releases, and Helm refuses what another release owns.
func OptionalDocument(document string) string {
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

// A Document is an object of a chart as YAML.
type Document struct {
	// ID tells it from the others of its variant, and File is the template that has it.
	ID, File string
	// Text is the object.
	Text string
}

// choices are the values of webhooks that a release has to choose from, in the order in which the templates have them.
var choices = []Certificates{NoWebhooks, Operator, CertManager}

// Documents returns the documents of a chart, each with its separator, by the names of its templates. variants has what is installed for each
// value of webhooks: what is the same for all is there once, and the rest depends on that value.
func Documents(variants func(Certificates) ([]Document, error)) (map[string][]string, error) {
	texts := map[Certificates]map[string]string{}
	var all []Document
	for _, choice := range choices {
		documents, err := variants(choice)
		if err != nil {
			return nil, err
		}
		texts[choice] = map[string]string{}
		for _, d := range documents {
			texts[choice][d.ID] = d.Text
			if !slices.ContainsFunc(all, func(other Document) bool { return other.ID == d.ID }) {
				all = append(all, d)
			}
		}
	}
	out := map[string][]string{}
	for _, d := range all {
		out[d.File] = append(out[d.File], alternatives(texts, d.ID)...)
	}
	return out, nil
}

// alternatives returns the texts of one object, each with the values of webhooks for which it is.
func alternatives(texts map[Certificates]map[string]string, id string) []string {
	var different []string
	of := map[string][]string{}
	for _, choice := range choices {
		text, is := texts[choice][id]
		if !is {
			continue
		}
		if of[text] == nil {
			different = append(different, text)
		}
		of[text] = append(of[text], strconv.Quote(string(choice)))
	}
	for i, text := range different {
		different[i] = separator + text
		if len(of[text]) < len(choices) { // with its separator: what is not there leaves no empty document behind
			different[i] = choiceBegin + strings.Join(of[text], " ") + "\n" + different[i] + choiceEnd + "\n"
		}
	}
	return different
}

// separator begins a document.
const separator = "---\n"

// The lines around a document that is only there for some values of webhooks.
const (
	choiceBegin = "# operetta-chart-webhooks-begin "
	choiceEnd   = "# operetta-chart-webhooks-end"
)

// choiceLine is the first one of them.
var choiceLine = regexp.MustCompile(`(?m)^` + choiceBegin + `(.*)$`)

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
	text = choiceLine.ReplaceAllString(text, "{{- if has .Values.webhooks (list $1) }}")
	text = strings.ReplaceAll(text, "\n"+choiceEnd+"\n", "\n{{- end }}\n")
	return strings.ReplaceAll(text, strconv.Itoa(chartReplicas), "{{ .Values.replicas }}")
}

// valuesSchema has Helm refuse values that the templates do not know: a misspelled one would change nothing.
const valuesSchema = `{
  "$schema": "http://json-schema.org/draft-07/schema#",
  "type": "object",
  "additionalProperties": false,
  "required": ["image", "replicas", "crds", "webhooks"],
  "properties": {
    "image": {"type": "string", "minLength": 1},
    "replicas": {"type": "integer", "minimum": 1},
    "crds": {"type": "boolean"},
    "webhooks": {"enum": ["", "operator", "cert-manager"]},
    "global": {
      "description": "Values that a chart above this one has for all charts below it; the templates use none.",
      "type": "object"
    },
    "enabled": {
      "description": "A chart above this one may have it as the condition whether this one is there.",
      "const": true
    }
  }
}
`

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
# Whether the operator serves admission webhooks: "" is not, "operator" makes the certificate
# itself, and "cert-manager" leaves that to cert-manager.
webhooks: %q
`, o.Image, o.Replicas, o.Webhooks),
		"values.schema.json": valuesSchema,
	}
	for name, documents := range manifests {
		out["templates/"+name] = "{{- /* Printed by operetta install --chart; do not edit. */ -}}\n" + strings.TrimPrefix(template("\n"+strings.Join(documents, "")), "\n")
	}
	return out
}
