package why

import (
	"time"
)

// An Answer is where a value comes from. Its form as JSON is documented for scripts, in docs/why.md.
type Answer struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace,omitempty"`
	Name       string `json:"name"`
	// Component and Object are the names in the package.
	Component string `json:"component"`
	Object    string `json:"object"`
	// Path is the field that was asked about.
	Path string `json:"path"`
	// Written says whether the package writes the field, and Value what it writes.
	Written bool `json:"written"`
	Value   any  `json:"value,omitempty"`
	// Secret says that values are masked, because they are or may be content of a Secret.
	Secret bool `json:"secret,omitempty"`
	// Lines are those of the package that the value is written in, and then those that these refer to.
	Lines []Line `json:"lines,omitempty"`
	// Sources are the values from outside the package behind it.
	Sources []Source `json:"sources,omitempty"`
	// Live is what the cluster has; it is missing if the object was not read or does not exist.
	Live *Live `json:"live,omitempty"`
	// Notes say what limits the answer.
	Notes []string `json:"notes,omitempty"`
}

// A Line is a line of the package.
type Line struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

// A Source is a field of the custom resource, of the configuration, of a live object or of an input.
type Source struct {
	// Path is as the package writes it, such as cr.spec.image.
	Path string `json:"path"`
	// Object is the live object or input, such as Deployment/web.
	Object string `json:"object,omitempty"`
	// From is how it came to its value.
	From  Origin `json:"from"`
	Value any    `json:"value,omitempty"`
	// By is who has set a field of the configuration.
	By string `json:"by,omitempty"`
	// Lines are those of the package that declare the field, with its default.
	Lines []Line `json:"lines,omitempty"`
}

// Origin is how a source came to its value.
type Origin string

// The origins.
const (
	// Given is what somebody has set.
	Given Origin = "Given"
	// Default is the default in the schema, or in the configuration of the package.
	Default Origin = "Default"
	// Unset is what nobody has set and has no default.
	Unset Origin = "Unset"
)

// Live is the field in the cluster.
type Live struct {
	// Exists says whether the object has the field, and Value what it is.
	Exists bool `json:"exists"`
	Value  any  `json:"value,omitempty"`
	// Differs says that it is not what the package writes.
	Differs bool `json:"differs,omitempty"`
	// Owners are the managers that own it.
	Owners []Owner `json:"owners,omitempty"`
}

// An Owner is a field manager.
type Owner struct {
	Manager     string `json:"manager"`
	Operation   string `json:"operation"`
	Subresource string `json:"subresource,omitempty"`
	// Time is when it last changed any of its fields.
	Time *time.Time `json:"time,omitempty"`
	// Parts says that it owns only parts of the field.
	Parts bool `json:"parts,omitempty"`
}
