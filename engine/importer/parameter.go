package importer

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A parameter is a field of the spec of the custom resource, whose default is what was imported.
type parameter struct {
	// path is that of the field below spec.
	path []string
	// about is a sentence about it, constraint its type, and value the default.
	about, constraint string
	value             any
}

// reference is what takes the place of a value in a manifest: CUE text.
type reference string

// lift replaces what users of a workload change most by references to the spec: the number of replicas and the images.
func lift(components []component, short func(string) string) []parameter {
	var out []parameter
	taken := map[string]bool{}
	for _, c := range components {
		for _, o := range c.objects {
			template, isWorkload := workloads[o.groupKind()]
			if !isWorkload {
				continue
			}
			w := &lifted{object: o, field: camel(identifier(short(o.GetName()), taken))}
			w.replicas()
			w.images(append(slices.Clone(template), "spec"))
			out = append(out, w.parameters...)
		}
	}
	return out
}

// A lifted is a workload whose values become fields of the spec.
type lifted struct {
	*object

	field      string
	parameters []parameter
}

// replicas lifts the number of replicas.
func (w *lifted) replicas() {
	n, has, err := unstructured.NestedInt64(w.Object, "spec", "replicas")
	if !has || err != nil {
		return
	}
	p := parameter{[]string{w.field, "replicas"}, fmt.Sprintf("replicas is the number of pods of the %s %s.", w.GetKind(), w.GetName()), "int & >=0", n}
	w.parameters = append(w.parameters, p)
	spec, _ := w.Object["spec"].(map[string]any)
	spec["replicas"] = p.reference()
}

// images lifts the images of the containers of a pod.
func (w *lifted) images(pod []string) {
	taken := map[string]bool{}
	for _, list := range []string{"initContainers", "containers"} {
		found, _, _ := unstructured.NestedFieldNoCopy(w.Object, append(slices.Clone(pod), list)...)
		containers, _ := found.([]any)
		for _, c := range containers {
			container, _ := c.(map[string]any)
			image, isText := container["image"].(string)
			name, _ := container["name"].(string)
			if !isText || image == "" || !objectName.MatchString(name) {
				continue
			}
			field := camel(identifier(name, taken))
			p := parameter{[]string{w.field, "images", field}, fmt.Sprintf("%s is the image of container %s.", field, name), `string & !=""`, image}
			w.parameters = append(w.parameters, p)
			container["image"] = p.reference()
		}
	}
}

// reference returns how a manifest refers to the parameter.
func (p parameter) reference() reference { return reference("cr.spec." + strings.Join(p.path, ".")) }

// camel returns a name as one word that is an identifier of CUE, as in myApp.
func camel(name string) string {
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '-' || r == '_' })
	for i, p := range parts {
		if i > 0 {
			parts[i] = strings.ToUpper(p[:1]) + p[1:]
		}
	}
	out := strings.Join(parts, "")
	if slices.Contains(reservedNames, strings.ToLower(out)) {
		out += "App"
	}
	return out
}

// reservedNames are names that YAML reads as true or false, words of CUE, and names that a reference begins with: as the
// name of a field around it, it would be that field.
var reservedNames = []string{"cr", "live", "inputs", "strings", "strconv", "time", "net", "y", "n", "yes", "no", "on", "off", "true", "false", "null", "for", "in", "if", "let", "import", "package", "string", "int", "bool", "bytes", "float", "number", "struct", "list"}
