package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"operetta.dev/engine/worker"
)

// evaluationFlags are the settings of the worker processes that evaluate packages for run.
type evaluationFlags struct {
	workers int
	time    time.Duration
	// memory is the limit of each; 0 stands for one that fits that of this process.
	memory quantity
}

func (f *evaluationFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.IntVar(&f.workers, "evaluation-workers", 2, "how many processes evaluate packages at most; they start when they are needed, and end when they are not")
	flags.DurationVar(&f.time, "evaluation-time", worker.DefaultTime, "how much processor time the evaluation of a custom resource may take")
	flags.Var(&f.memory, "evaluation-memory", "memory limit of each of these processes, such as 256Mi; by default an eighth of the limit of this process, at least 128Mi, at most 512Mi")
}

// newPool returns the workers.
func (f *evaluationFlags) newPool(m *worker.Metrics) (*worker.Pool, error) {
	if f.workers < 1 || f.time <= 0 {
		return nil, usageError{fmt.Errorf("--evaluation-workers and --evaluation-time are greater than 0")}
	}
	self, err := thisBinary()
	if err != nil {
		return nil, err
	}
	return worker.NewPool(worker.Options{
		Command: []string{self, "worker", evaluateCommand}, Size: f.workers,
		Limits: worker.Limits{Memory: f.memoryFor(availableMemory()), Time: f.time}, Metrics: m,
	}), nil
}

// The memory limit of a worker that evaluates, in bytes, unless a flag sets another.
const (
	minEvaluationMemory = 128 << 20
	maxEvaluationMemory = 512 << 20
	evaluationShare     = 8
)

// reserved returns the memory that all workers may take in a process with a memory limit. Those that
// examine packages have the room of one that evaluates, if there are several.
func (f *evaluationFlags) reserved(available int64, examining workerLimits) int64 {
	return int64(max(1, f.workers-1))*f.memoryFor(available) + max(f.memoryFor(available)*int64(min(1, f.workers-1)), examining.all())
}

// memoryFor returns the memory limit of each worker in a process with a memory limit, or with none if
// available is 0.
func (f *evaluationFlags) memoryFor(available int64) int64 {
	switch {
	case f.memory != 0:
		return int64(f.memory)
	case available == 0:
		return maxEvaluationMemory
	}
	return max(minEvaluationMemory, min(available/evaluationShare, maxEvaluationMemory))
}
