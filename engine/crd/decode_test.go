package crd_test

import utiljson "k8s.io/apimachinery/pkg/util/json"

// decode is how the API server reads JSON; only what is below a map becomes int64.
func decode(data []byte, into *struct{ Value any }) error {
	var m map[string]any
	if err := utiljson.Unmarshal(data, &m); err != nil {
		return err
	}
	into.Value = m["Value"]
	return nil
}
