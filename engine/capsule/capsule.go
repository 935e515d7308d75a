package capsule

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"operetta.dev/engine/cluster"
	"operetta.dev/engine/source"
)

// Format is the only format of capsules so far.
const Format = 1

// maxFile is how many bytes a capsule has at most.
const maxFile = 32 << 20

// A Capsule is what one reconcile has read and done.
type Capsule struct {
	Format int `json:"format"`
	// Package and Digest are the version of the package that was run.
	Package  string   `json:"package"`
	Digest   string   `json:"digest"`
	Resource Resource `json:"resource"`
	// DisplayPrefix is the prefix with which the messages of the decision show the files of the package, where the
	// operator had them. Capsules of earlier versions have none.
	DisplayPrefix *string `json:"shown,omitempty"`
	// Overlays are the files of the overlays that the package was unified with.
	Overlays []source.OverlayFile `json:"overlays,omitempty"`
	// Taken is when the reconcile began.
	Taken time.Time `json:"taken"`
	// ConfigMap names the configuration of the operator, and Allow are the administrative annotations that count there.
	ConfigMap string   `json:"configMap,omitempty"`
	Allow     []string `json:"allow,omitempty"`
	// Did are the writes of the reconcile, in order, and Failed is why it is retried.
	Did    []RecordedWrite `json:"did"`
	Failed string          `json:"failed,omitempty"`
	// Missing says what the decision asks for and the reconcile has not read: a process that knows more reads less.
	Missing []string `json:"missing,omitempty"`
	// Decision is what the same version decides of what the capsule holds.
	Decision Decision `json:"decision"`
	// Objects are what the reconcile has read, as operetta dump writes it.
	Objects []byte `json:"objects"`
}

// A Resource is the identity of a custom resource.
type Resource struct {
	Group     string `json:"group"`
	Version   string `json:"version"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// Ref returns the identity as a Ref.
func (r Resource) Ref() cluster.Ref {
	return cluster.Ref{GroupVersionKind: schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}, Namespace: r.Namespace, Name: r.Name}
}

// resourceOf returns a Ref as a Resource.
func resourceOf(ref cluster.Ref) Resource {
	return Resource{Group: ref.Group, Version: ref.Version, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
}

// A RecordedWrite is one write.
type RecordedWrite struct {
	// Verb is that of the write, such as "apply" or "delete", and Object what it was about, as "Kind namespace/name".
	Verb   string `json:"verb"`
	Object string `json:"object"`
	// Refused is the reason of the API server for refusing it, such as "Forbidden", or "".
	Refused string `json:"refused,omitempty"`
}

// String returns the write on one line.
func (a RecordedWrite) String() string {
	if a.Refused != "" {
		return fmt.Sprintf("%s %s: %s", a.Verb, a.Object, a.Refused)
	}
	return a.Verb + " " + a.Object
}

// Explains reports whether the decision shows what the operator did to objects. It does not if the package computes
// with a value of a Secret, which was replaced, or if the process remembered something from earlier, such as a write
// that it had tried.
func (c *Capsule) Explains() bool {
	did, decided := map[string]bool{}, map[string]bool{}
	for _, a := range c.Did {
		if a.Object != c.Resource.Ref().String() {
			did[a.Object] = true
		}
	}
	for _, w := range c.Decision.Writes {
		if w.Object != c.Resource.Ref().String() { // it is gone with its last finalizer
			decided[w.Object] = true
		}
	}
	return maps.Equal(did, decided)
}

// Read reads the capsule of a file. It errors if it is none, or has another format.
func Read(path string) (*Capsule, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	out, err := Decode(file)
	if err != nil {
		return nil, fmt.Errorf("capsule %s: %w", path, err)
	}
	return out, nil
}

// Decode is Read for the content of a file.
func Decode(from io.Reader) (*Capsule, error) {
	text, err := io.ReadAll(io.LimitReader(from, maxFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxFile:
		return nil, fmt.Errorf("it has more than %d bytes", maxFile)
	}
	var out Capsule
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	if err := in.Decode(&out); err != nil {
		return nil, fmt.Errorf("it is not JSON of a capsule: %w", err)
	}
	if err := out.Decision.convertNumbers(); err != nil {
		return nil, fmt.Errorf("its decision: %w", err)
	}
	out.Decision.maskDigests() // a version of before has written them
	switch {
	case out.Format != Format:
		return nil, fmt.Errorf("it has format %d, and this version reads %d", out.Format, Format)
	case !out.Resource.Ref().Known():
		return nil, errors.New("it names no resource")
	case out.Digest == "":
		return nil, errors.New("it names no version of a package")
	}
	return &out, nil
}

// encode returns the capsule as a file.
func (c *Capsule) encode() ([]byte, error) {
	out, err := json.MarshalIndent(c, "", "  ")
	if err == nil && len(out) > maxFile {
		err = fmt.Errorf("the capsule has more than %d bytes", maxFile)
	}
	return append(out, '\n'), err
}

// configMap returns the name of the configuration, which may be none.
func (c *Capsule) configMap() types.NamespacedName {
	namespace, name, _ := strings.Cut(c.ConfigMap, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}
