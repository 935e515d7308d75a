package crd

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// engineStatus is what the engine itself reports in the status of every resource.
func engineStatus() map[string]schemaProps {
	return map[string]schemaProps{
		"phase":                  word("The phase of the rollout, in one word."),
		"observedGeneration":     {Type: "integer", Format: "int64", Description: "The generation of the spec that this status is about."},
		"lastHandledReconcileAt": word("The value of the reconcile annotation that was last acted upon."),
		"componentsReady":        word(`How many components are ready, of how many: "2/3".`),
		"conditions":             conditions(),
		"components":             components(),
		"package":                object("The package that realises this resource.", "name", "Its name.", "version", "Its version.", "digest", "The digest of its content."),
		"versions":               object("The versions of the package.", "desired", "The one to roll out.", "reconciled", "The last one that was rolled out entirely."),
		"inventory":              inventory(),
		"hooks":                  hooks(),
		"patches":                atomic("The names of the patches (operetta.dev) by which objects differ from what the package renders.", word("A patch.")),
	}
}

func word(description string) schemaProps {
	return schemaProps{Type: "string", Description: description}
}

// object is a struct of strings, given as pairs of a name and a description.
func object(description string, pairs ...string) schemaProps {
	s := schemaProps{Type: "object", Description: description, Properties: map[string]schemaProps{}}
	for pair := range slices.Chunk(pairs, 2) {
		s.Properties[pair[0]] = word(pair[1])
	}
	return s
}

func listMap(description, key string, item schemaProps) schemaProps {
	return schemaProps{
		Type: "array", Description: description,
		XListType: new("map"), XListMapKeys: []string{key},
		Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &item},
	}
}

func components() schemaProps {
	item := object("The state of one component.",
		"name", "The name of the component.",
		"state", "Its state, in one word.",
		"reason", "Why it is in this state, in one word.",
		"message", "Why it is in this state, and what it waits for.",
		"blocks", "The components that wait for it.",
		"timedOutIn", "The state in which its timeout ended.")
	item.Properties["since"] = schemaProps{Type: "string", Format: "date-time", Description: "Since when it has been in this state, for this generation of the spec."}
	item.Required = []string{"name"}
	return listMap("The state of each component.", "name", item)
}

// inventory is what package ownership encodes. It is atomic: one writer replaces it as a
// whole, and managedFields do not repeat each of its entries.
func inventory() schemaProps {
	entry := object("An object.",
		"object", "Its name within the component.",
		"apiVersion", "Its group and version.",
		"kind", "Its kind.",
		"namespace", "Its namespace, if that is not this resource's.",
		"name", "Its name.",
		"digest", "The digest of the manifest that was last applied.",
		"uid", "How its UID begins.",
		"content", "The digest of what it was last applied with but for its metadata, if it is of a kind that ends.",
		"ended", "How it ended with that content: Succeeded; or Failed, if it removes itself.",
		"last", "What its status said when it had ended, in short, as JSON.")
	entry.Properties["clusterScoped"] = schemaProps{Type: "boolean", Description: "Whether it has no namespace."}
	entry.Properties["orphan"] = schemaProps{Type: "boolean", Description: "Whether it is left behind instead of being deleted."}
	entry.Required = []string{"object", "apiVersion", "kind", "name"}
	name := word("A component.")
	group := object("The objects of one component.", "component", "The name of the component.")
	group.Required = []string{"component"}
	group.Properties["dependsOn"] = atomic("The components that are deleted after this one.", name)
	group.Properties["objects"] = atomic("The objects.", entry)
	return atomic("The objects that the operator wrote for this resource. Deletion goes by it; do not edit it.", group)
}

// The bounds of the hooks in a status, which somebody else may have written: whoever reads
// them goes by the same.
const (
	// MaxHooks is how many there may be, as many as an inventory has components.
	MaxHooks = 2000
	// MaxHookName and MaxHookDigest are how long the name and the digest of one may be.
	MaxHookName   = 253
	MaxHookDigest = 128
	// maxHookState is how long its state may be: a word, also of a later version.
	maxHookState = 63
)

// hooks are atomic for the same reason.
func hooks() schemaProps {
	item := object("A hook.", "name", "Its phase and name.", "digest", "The content that it ran with.", "state", "How it ended: Verified or Failed; or Waiting, if it is to run before deletion.")
	item.Required = []string{"name"}
	for field, longest := range map[string]int64{"name": MaxHookName, "digest": MaxHookDigest, "state": maxHookState} {
		bounded := item.Properties[field]
		bounded.MaxLength = new(longest)
		item.Properties[field] = bounded
	}
	all := atomic("The hooks that have run, each once for its content, and those that are to run before deletion.", item)
	all.MaxItems = new(int64(MaxHooks))
	return all
}

func atomic(description string, item schemaProps) schemaProps {
	return schemaProps{
		Type: "array", Description: description, XListType: new("atomic"),
		Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &item},
	}
}

// conditions has the schema of metav1.Condition, as controller-gen writes it.
func conditions() schemaProps {
	item := schemaProps{
		Type:        "object",
		Description: "One aspect of the state of this resource.",
		Required:    []string{"lastTransitionTime", "message", "reason", "status", "type"},
		Properties: map[string]schemaProps{
			"type": {
				Type: "string", MaxLength: new(int64(316)), Description: "The aspect: Ready, Reconciling, Stalled.",
				Pattern: `^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`,
			},
			"status": {
				Type: "string", Description: "Whether it holds.",
				Enum: []apiextensionsv1.JSON{*raw(`"True"`), *raw(`"False"`), *raw(`"Unknown"`)},
			},
			"observedGeneration": {
				Type: "integer", Format: "int64", Minimum: new(0.0),
				Description: "The generation of the spec that this condition is about.",
			},
			"lastTransitionTime": {Type: "string", Format: "date-time", Description: "When status last changed."},
			"reason": {
				Type: "string", MinLength: new(int64(1)), MaxLength: new(int64(1024)),
				Pattern: `^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`, Description: "Why, in one word that programs can rely on.",
			},
			"message": {Type: "string", MaxLength: new(int64(32768)), Description: "Why, in a sentence for people."},
		},
	}
	return listMap("The conditions of this resource: Ready, Reconciling and Stalled, as kstatus defines them.", "type", item)
}
