//go:build pin

package main

// These imports are never compiled. They keep the modules whose source is read in go.mod when somebody
// runs go mod tidy.
import (
	_ "k8s.io/api/core/v1"
	_ "k8s.io/apimachinery/pkg/apis/meta/v1"
)
