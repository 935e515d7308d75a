package ownership

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The engine reads an inventory from a status or from the marks of objects, and anybody may have
// written either. These limits bound the cost of that. The API server could not store an honest
// inventory that exceeds them.
const (
	// MaxObjects is how many objects an inventory may have.
	MaxObjects = 10_000
	// maxComponents is how many components they may be of, and maxEdges how many edges
	// there may be between those.
	maxComponents, maxEdges = 2_000, 20_000

	// maxName is how long names may be, as those of objects; an API group is a name, too.
	maxName, maxVersion = 253, 253 + 1 + 63
	maxNamespace        = 63
	maxUID, maxDigest   = 36, 128
)

// componentName matches the names of components and their objects that the contract allows, and
// the names of hooks, which contain their phase.
var componentName = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_.-]*$`)

// Check errors with an UnreadableError if Decode would refuse the inventory. Check an inventory
// before it is stored: one that Decode refuses stops the resource until a person removes it.
func (inv Inventory) Check() error {
	if len(inv) > maxComponents {
		return &UnreadableError{"", fmt.Sprintf("has more than %d components", maxComponents)}
	}
	seen := map[string]bool{}
	objects, edges := 0, 0
	for i, g := range inv {
		at := fmt.Sprintf("[%d]", i)
		if err := g.check(at); err != nil {
			return err
		}
		if seen[g.Component] {
			return &UnreadableError{at + ".component", fmt.Sprintf("%q is there twice", g.Component)}
		}
		seen[g.Component] = true
		objects, edges = objects+len(g.Objects), edges+len(g.DependsOn)
	}
	switch {
	case objects > MaxObjects:
		return &UnreadableError{"", fmt.Sprintf("has more than %d objects", MaxObjects)}
	case edges > maxEdges:
		return &UnreadableError{"", fmt.Sprintf("has more than %d edges", maxEdges)}
	}
	return nil
}

// check errors as Inventory.Check does, with a path below that of the group.
func (g Group) check(at string) error {
	if problem := wrongName(g.Component); problem != "" {
		return &UnreadableError{at + ".component", problem}
	}
	for i, to := range g.DependsOn {
		problem := wrongName(to)
		if to == g.Component {
			problem = "is the component itself"
		}
		if problem != "" {
			return &UnreadableError{fmt.Sprintf("%s.dependsOn[%d]", at, i), problem}
		}
	}
	for i, e := range g.Objects {
		if field, problem := e.fault(); problem != "" {
			return &UnreadableError{fmt.Sprintf("%s.objects[%d].%s", at, i, field), problem}
		}
	}
	return nil
}

// Check errors with an UnreadableError if Decode would refuse the entry.
func (e Entry) Check() error {
	if field, problem := e.fault(); problem != "" {
		return &UnreadableError{field, problem}
	}
	return nil
}

// fault returns the first field of an entry that has an impossible value, and what is wrong with it.
func (e Entry) fault() (field, problem string) {
	if problem := wrongName(e.Object); problem != "" {
		return "object", problem
	}
	for _, f := range []struct {
		name, value string
		limit       int
		required    bool
	}{
		{"apiVersion", e.APIVersion, maxVersion, true}, {"kind", e.Kind, maxName, true}, {"name", e.Name, maxName, true},
		{"namespace", e.Namespace, maxNamespace, false}, {"digest", e.Digest, maxDigest, false}, {"uid", e.UIDPrefix, maxUID, false}, {"content", e.Content, maxDigest, false},
	} {
		if f.required && f.value == "" {
			return f.name, "is missing"
		}
		if problem := wrongText(f.value, f.limit); problem != "" {
			return f.name, problem
		}
	}
	if gv, err := schema.ParseGroupVersion(e.APIVersion); err != nil || gv.Version == "" {
		return "apiVersion", fmt.Sprintf("%q is no version of an API", e.APIVersion)
	}
	if e.ClusterScoped && e.Namespace != "" {
		return "namespace", "is set, and so is clusterScoped"
	}
	if wrong := content.IsPathSegmentName(e.Name); len(wrong) > 0 {
		return "name", fmt.Sprintf("%q %s", e.Name, wrong[0])
	}
	if wrong := content.IsPathSegmentName(e.Namespace); len(wrong) > 0 {
		return "namespace", fmt.Sprintf("%q %s", e.Namespace, wrong[0])
	}
	return e.wrongFinish()
}

// wrongFinish returns what is wrong with what an entry says of how its object finished.
func (e Entry) wrongFinish() (field, problem string) {
	if !slices.Contains([]FinishState{NotFinished, Succeeded, Failed}, e.Ended) {
		return "ended", "is of a later version"
	}
	if e.Last == "" {
		return "", ""
	}
	return "last", wrongShortStatus(e.Last)
}

// wrongName returns why a text cannot name a component or one of its objects, or "".
func wrongName(name string) string {
	switch {
	case name == "":
		return "is missing"
	case len(name) > maxName:
		return fmt.Sprintf("is longer than %d characters", maxName)
	case !componentName.MatchString(name):
		return fmt.Sprintf("%q is no name of a component or an object", name)
	}
	return ""
}

// wrongText returns what is wrong with a text of at most so many bytes, or "".
func wrongText(text string, limit int) string {
	switch {
	case len(text) > limit:
		return fmt.Sprintf("is longer than %d characters", limit)
	case !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }):
		return fmt.Sprintf("%q has characters that do not print", text)
	}
	return ""
}

// wrongShortStatus returns what is wrong with a stored status, or "". It accepts only what
// shortStatus returns, because a package sees it as the status of the object.
func wrongShortStatus(text string) string {
	if len(text) > maxShortStatus {
		return fmt.Sprintf("is longer than %d characters", maxShortStatus)
	}
	var said map[string]any
	if json.Unmarshal([]byte(text), &said) != nil || said == nil {
		return "is not the JSON of an object"
	}
	if conditions, has := said["conditions"]; has && !areShort(conditions) {
		return "has conditions of another form"
	}
	delete(said, "conditions")
	for _, value := range said {
		switch value.(type) {
		case map[string]any, []any, nil:
			return "has more than plain fields"
		}
	}
	return ""
}

// areShort reports whether a value is a list of conditions as shortStatus keeps them. A null, which
// the decoder takes for a missing value, is not.
func areShort(conditions any) bool {
	list, isList := conditions.([]any)
	return isList && DecodeStrict("", list, &[]shortCondition{}) == nil && !slices.ContainsFunc(list, func(c any) bool {
		fields, _ := c.(map[string]any)
		return fields == nil || slices.Contains(slices.Collect(maps.Values(fields)), nil)
	})
}
