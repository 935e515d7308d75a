package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// A metric is something that is measured: a row of the table.
type metric struct {
	id, title, unit string
	// goal is what is aimed at, for people.
	goal string
}

// metrics are all metrics, in the order of the table.
var metrics = []metric{
	{"create_wall", "creation: all Ready", "s", "≤ 90 s for 1,000"},
	{"create_cpu", "creation: CPU per resource", "ms", "≤ 18 ms, ≤ 1.5 × handwritten"},
	{"create_own_cpu", "creation: that without workers", "ms", ""},
	{"create_bytes", "creation: bytes allocated by that", "KiB", ""},
	{"create_allocations", "creation: allocations", "", ""},
	{"create_reconciles", "creation: reconciles of each", "", ""},
	{"create_evaluations", "creation: evaluations of each by CUE", "", ""},
	{"create_memory", "creation: peak memory", "MiB", "≤ 90 at 300, ≤ 180 at 1,000"},
	{"create_writes", "creation: writes per resource", "", "≤ objects + 3 = 11"},
	{"create_requests", "creation: all requests per resource", "", ""},
	{"idle_start", "start without resources: CPU", "ms", ""},
	{"idle_memory", "without resources: memory", "MiB", ""},
	{"idle_cpu", "without resources: share of a core", "%", ""},
	{"rest_cpu", "at rest, every 30 s: share of a core", "%", "≤ 0.2 % for 300"},
	{"rest_requests", "at rest: requests per minute", "", "0"},
	{"unchanged_cpu", "unchanged reconcile: CPU", "ms", "≤ 0.1 ms"},
	{"restart_cpu", "restart: CPU per settled resource", "ms", "≤ 1.5 ms"},
	{"restart_own_cpu", "restart: that without workers", "ms", ""},
	{"restart_bytes", "restart: bytes allocated by that", "KiB", ""},
	{"restart_allocations", "restart: allocations", "", ""},
	{"restart_reconciles", "restart: reconciles of each", "", ""},
	{"restart_evaluations", "restart: evaluations of each by CUE", "", ""},
	{"restart_wall", "restart: all reconciled", "s", ""},
	{"restart_writes", "restart: writes", "", "0"},
	{"edit_cpu", "package edit: CPU per resource", "ms", "≤ 6 ms"},
	{"edit_own_cpu", "package edit: that without workers", "ms", ""},
	{"edit_bytes", "package edit: bytes allocated by that", "KiB", ""},
	{"edit_allocations", "package edit: allocations", "", ""},
	{"edit_reconciles", "package edit: reconciles of each", "", ""},
	{"edit_evaluations", "package edit: evaluations of each by CUE", "", ""},
	{"edit_wall", "package edit: all rolled out", "s", ""},
	{"edit_p50", "package edit: a user's edit, median", "s", ""},
	{"edit_p99", "package edit: a user's edit, p99", "s", "≤ 1 s"},
	{"chain_created", "chain of ten: created", "s", "≤ 0.15 s"},
	{"chain_passed", "chain of ten: a value passed on", "s", "≤ 0.15 s"},
	{"children_200", "one resource with 200 objects: Ready", "s", "≤ 3 s"},
	{"children_1000", "one resource with 1,000 objects: Ready", "s", "≤ 15 s"},
	{"children_status", "its status, 1,000 objects", "KiB", "bounded"},
	{"fleet_wall", "resources of 4 objects: all Ready", "s", "≤ 120 s for 1,000"},
	{"fleet_cpu", "resources of 4 objects: CPU each", "ms", ""},
	{"fleet_memory", "resources of 4 objects: peak memory", "MiB", "≤ 150 for 1,000"},
	{"growth_100", "in memory: CPU each of 100", "ms", ""},
	{"growth_300", "in memory: CPU each of 300", "ms", ""},
	{"growth_1000", "in memory: CPU each of 1,000", "ms", "within 20 %"},
	{"growth_3000", "in memory: CPU each of 3,000", "ms", "within 20 %"},
}

// A measurement is one value of a run, as it is written to the file of results.
type measurement struct {
	Run        time.Time `json:"run"`
	Commit     string    `json:"commit"`
	N          int       `json:"n"`
	Controller string    `json:"controller"`
	Metric     string    `json:"metric"`
	Value      float64   `json:"value"`
	Unit       string    `json:"unit"`
}

// results are the measurements of one run.
type results struct {
	run    time.Time
	commit string
	n      int
	all    []measurement
}

// add adds a measurement.
func (r *results) add(controller, id string, value float64) {
	at := slices.IndexFunc(metrics, func(m metric) bool { return m.id == id })
	r.all = append(r.all, measurement{Run: r.run, Commit: r.commit, N: r.n, Controller: controller, Metric: id, Value: value, Unit: metrics[at].unit})
}

// value returns a measurement, and whether there is one.
func (r *results) value(controller, id string) (float64, bool) {
	at := slices.IndexFunc(r.all, func(m measurement) bool { return m.Controller == controller && m.Metric == id })
	if at < 0 {
		return 0, false
	}
	return r.all[at].Value, true
}

// controllers returns the names of the controllers that were measured, in their order.
func (r *results) controllers() []string {
	var names []string
	for _, m := range r.all {
		if !slices.Contains(names, m.Controller) {
			names = append(names, m.Controller)
		}
	}
	return names
}

// save appends the measurements to a file, one JSON object on each line.
func (r *results) save(name string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(f)
	for _, m := range r.all {
		if err := encoder.Encode(m); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return f.Close()
}
