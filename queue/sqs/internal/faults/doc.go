// Package faults breaks the calls between a working worker and a real SQS server.
//
// It has tests only. They judge the worker by the clock and run without the race detector: what the same calls do to memory is tested in package
// sqs. SOAK=1 chooses the long forms.
package faults
