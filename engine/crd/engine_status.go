package crd

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// engineStatus returns the schemas of the fields that the engine writes in every status.
func engineStatus() map[string]schemaProps {
	return map[string]schemaProps{
		"phase":                  stringField("The phase of the rollout, in one word."),
		"observedGeneration":     {Type: "integer", Format: "int64", Description: "The generation of the spec that this status is about."},
		"lastHandledReconcileAt": stringField("The value of the reconcile annotation that was last acted upon."),
		"componentsReady":        stringField(`How many components are ready, of how many: "2/3".`),
		"conditions":             conditions(),
		"components":             components(),
		"package":                stringStruct("The package that this resource is deployed from.", "name", "Its name.", "version", "Its version.", "digest", "The digest of its content."),
		"versions":               stringStruct("The versions of the package.", "desired", "The version to roll out.", "reconciled", "The last version that was rolled out completely."),
		"inventory":              inventory(),
		"hooks":                  hooks(),
		"patches":                atomicList("The names of the patches (operetta.dev) by which objects differ from what the package renders.", stringField("A patch.")),
	}
}

func stringField(description string) schemaProps {
	return schemaProps{Type: "string", Description: description}
}

// stringStruct returns the schema of a struct of strings, given as pairs of name and
// description.
func stringStruct(description string, pairs ...string) schemaProps {
	s := schemaProps{Type: "object", Description: description, Properties: map[string]schemaProps{}}
	for pair := range slices.Chunk(pairs, 2) {
		s.Properties[pair[0]] = stringField(pair[1])
	}
	return s
}

func mapList(description, key string, item schemaProps) schemaProps {
	return schemaProps{
		Type: "array", Description: description,
		XListType: new("map"), XListMapKeys: []string{key},
		Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &item},
	}
}

func components() schemaProps {
	item := stringStruct("The state of one component.",
		"name", "The name of the component.",
		"state", "Its state, in one word.",
		"reason", "Why it is in this state, in one word.",
		"message", "Why it is in this state, and what it waits for.",
		"blocks", "The components that wait for it.",
		"timedOutIn", "The state in which its timeout ended.")
	item.Properties["since"] = schemaProps{Type: "string", Format: "date-time", Description: "When it entered this state, for this generation of the spec."}
	item.Properties["dependsOn"] = atomicList("The components that it needs, if it or one of them has no objects; otherwise the inventory says that.", stringField("A component."))
	item.Required = []string{"name"}
	return mapList("The state of each component.", "name", item)
}

// inventory returns the schema of what package ownership encodes. The list is atomic: one
// writer replaces it as a whole, and managedFields do not repeat each of its entries.
func inventory() schemaProps {
	entry := stringStruct("An object.",
		"object", "Its name within the component.",
		"apiVersion", "Its group and version.",
		"kind", "Its kind.",
		"namespace", "Its namespace, if that is not this resource's.",
		"name", "Its name.",
		"digest", "The digest of the manifest that was last applied.",
		"uid", "The beginning of its UID.",
		"content", "The digest of the manifest that was last applied, without metadata, if its kind runs to completion.",
		"ended", "How it completed with that content: Succeeded; or Failed, if it deletes itself.",
		"last", "A summary of its status when it had completed, as JSON.")
	entry.Properties["clusterScoped"] = schemaProps{Type: "boolean", Description: "Whether it has no namespace."}
	entry.Properties["orphan"] = schemaProps{Type: "boolean", Description: "Whether it is left behind instead of being deleted."}
	entry.Required = []string{"object", "apiVersion", "kind", "name"}
	name := stringField("A component.")
	group := stringStruct("The objects of one component.", "component", "The name of the component.")
	group.Required = []string{"component"}
	group.Properties["dependsOn"] = atomicList("The components that are deleted after this one.", name)
	group.Properties["objects"] = atomicList("The objects.", entry)
	return atomicList("The objects that the operator wrote for this resource. Deletion relies on it; do not edit it.", group)
}

// The bounds of the hooks in a status. Another client may have written the status, so the
// code that reads it checks the same bounds.
const (
	// MaxHooks is the maximum number of hooks: as many as an inventory has components.
	MaxHooks = 2000
	// MaxHookName and MaxHookDigest are the maximum lengths of a hook's name and digest.
	MaxHookName   = 253
	MaxHookDigest = 128
	// maxHookState is the maximum length of its state: one word, also in a later version.
	maxHookState = 63
)

// hooks returns the schema of the hooks. The list is atomic for the same reason as the
// inventory.
func hooks() schemaProps {
	item := stringStruct("A hook.", "name", "Its phase and name.", "digest", "The content that it ran with.", "state", "How it ended: Verified or Failed; or Waiting, if it is to run before deletion.")
	item.Required = []string{"name"}
	for field, longest := range map[string]int64{"name": MaxHookName, "digest": MaxHookDigest, "state": maxHookState} {
		bounded := item.Properties[field]
		bounded.MaxLength = new(longest)
		item.Properties[field] = bounded
	}
	all := atomicList("The hooks that have run, each once for its content, and those that are to run before deletion.", item)
	all.MaxItems = new(int64(MaxHooks))
	return all
}

func atomicList(description string, item schemaProps) schemaProps {
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
				Enum: []apiextensionsv1.JSON{*rawJSON(`"True"`), *rawJSON(`"False"`), *rawJSON(`"Unknown"`)},
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
	return mapList("The conditions of this resource: Ready, Reconciling and Stalled, as kstatus defines them.", "type", item)
}
