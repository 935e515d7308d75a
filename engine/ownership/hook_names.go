package ownership

import (
	"k8s.io/apimachinery/pkg/runtime"
	"operetta.dev/engine/program"
)

// contentLength is how much of a digest a name carries: enough to tell the versions
// of one hook apart.
const contentLength = 8

// NamedByContent returns a component whose object names end in the digest of all their content, and
// that digest, made with a key. So other content has other objects, and the same content
// always has the same ones. It errors when the content has no digest.
func NamedByContent(c program.Component, key string) (program.Component, string, error) {
	manifests := make([]any, len(c.Objects))
	for i, o := range c.Objects {
		manifests[i] = o.Manifest
	}
	digest, err := program.Digest(key, map[string]any{"objects": manifests})
	if err != nil {
		return c, "", err
	}
	suffix := "-" + digest[:contentLength]
	out := c
	out.Objects = nil
	for _, o := range c.Objects {
		o.Manifest = runtime.DeepCopyJSON(o.Manifest)
		o.Identity.Name += suffix
		meta, _ := o.Manifest["metadata"].(map[string]any)
		meta["name"] = o.Identity.Name
		out.Objects = append(out.Objects, o)
	}
	return out, digest, nil
}
