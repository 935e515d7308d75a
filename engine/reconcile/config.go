package reconcile

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"operetta.dev/engine/program"
	"operetta.dev/engine/rollout"
	"sigs.k8s.io/yaml"
)

// configuration is the configuration of a resource, and the inputs that it was read from.
type configuration struct {
	layers []program.Layer
	inputs []program.Input
}

// config returns the configuration of the resource: the operator's ConfigMap, under the key of the
// package's name, overridden by the annotation of the resource. The ConfigMap may be missing. It
// errors with a ConfigError when a layer is not YAML; if that layer is the annotation, it
// returns the configuration of the ConfigMap, too.
func (s *state) config(ctx context.Context) (configuration, error) {
	out := configuration{inputs: s.configInputs()}
	for _, from := range out.inputs {
		found, err := rollout.ReadInput(ctx, s.Cluster, from)
		if err != nil {
			return configuration{}, fmt.Errorf("%s: configuration: %w", s.owner, err)
		}
		key := s.program.Name() + ".yaml"
		for _, o := range found.Objects {
			data, _ := o["data"].(map[string]any)
			text, _ := data[key].(string)
			layer, err := parsedLayer(fmt.Sprintf("ConfigMap %s, key %s", s.ConfigMap, key), text)
			if err != nil {
				return out, &ConfigError{cause: err}
			}
			out.add(layer)
		}
	}
	layer, err := parsedLayer("annotation "+AnnotationConfig, s.cr.GetAnnotations()[AnnotationConfig])
	if err != nil {
		return out, &ConfigError{cause: err, Tenant: true}
	}
	layer.Tenant = true
	out.add(layer)
	return out, nil
}

// configInputs returns the operator's ConfigMap as an input, if there is one.
func (r *Reconciler) configInputs() []program.Input {
	if r.ConfigMap.Name == "" {
		return nil
	}
	return []program.Input{{Name: "config", Kind: configMapKind, Namespace: r.ConfigMap.Namespace, Object: r.ConfigMap.Name}}
}

var configMapKind = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

// A ConfigError says that a layer of configuration is not YAML, or too large.
type ConfigError struct {
	cause error
	// Tenant says that the layer is the annotation of the resource, and the others are valid.
	Tenant bool
}

// Error names the layer.
func (e *ConfigError) Error() string { return e.cause.Error() }

// Unwrap returns the cause.
func (e *ConfigError) Unwrap() error { return e.cause }

// parsedLayer parses one layer. It errors with its origin.
func parsedLayer(origin, text string) (program.Layer, error) {
	layer := program.Layer{Origin: origin}
	if err := checkExpandedSize(text); err != nil {
		return layer, fmt.Errorf("%s: %w", origin, err)
	}
	if err := yaml.Unmarshal([]byte(text), &layer.Values); err != nil {
		return layer, fmt.Errorf("%s: %w", origin, err)
	}
	return layer, nil
}

// add adds a layer that overrides the others, unless it is empty.
func (c *configuration) add(layer program.Layer) {
	if len(layer.Values) > 0 {
		c.layers = append(c.layers, layer)
	}
}
