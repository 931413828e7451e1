package sqs

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/caisson-go/caisson/queue"
)

// attributes are what a queue says of itself.
type attributes struct {
	at    time.Time // when it was asked; zero if never
	known bool
	arn   string

	maxSize                    int
	retention                  time.Duration
	delay                      time.Duration // of messages that ask for none
	ready, delayed, notVisible int64
	redrive                    *redrivePolicy // nil if there is none
}

type redrivePolicy struct {
	Target string `json:"deadLetterTargetArn"`
	// Max comes as a number or as text, depending on who wrote the policy.
	Max json.Number `json:"maxReceiveCount"`
}

func (r *redrivePolicy) max() int {
	n, err := strconv.Atoi(r.Max.String())
	if err != nil {
		return 0
	}
	return n
}

func parseAttributes(m map[string]string) (attributes, error) {
	a := attributes{known: true, arn: m[string(types.QueueAttributeNameQueueArn)], maxSize: defaultMaxSize}
	var err error
	number := func(name types.QueueAttributeName) int64 {
		s, ok := m[string(name)]
		if !ok {
			return 0
		}
		n, e := strconv.ParseInt(s, 10, 64)
		if e != nil && err == nil {
			err = fmt.Errorf("%s is %q, which is no number", name, s)
		}
		return n
	}
	if n := number(types.QueueAttributeNameMaximumMessageSize); n > 0 {
		a.maxSize = int(n)
	}
	a.retention = time.Duration(number(types.QueueAttributeNameMessageRetentionPeriod)) * time.Second
	a.delay = time.Duration(number(types.QueueAttributeNameDelaySeconds)) * time.Second
	a.ready = number(types.QueueAttributeNameApproximateNumberOfMessages)
	a.delayed = number(types.QueueAttributeNameApproximateNumberOfMessagesDelayed)
	a.notVisible = number(types.QueueAttributeNameApproximateNumberOfMessagesNotVisible)
	if s := m[string(types.QueueAttributeNameRedrivePolicy)]; s != "" {
		r := &redrivePolicy{}
		if e := json.Unmarshal([]byte(s), r); e != nil {
			return a, fmt.Errorf("redrive policy: %w", e)
		}
		a.redrive = r
	}
	return a, err
}

// depth counts the messages. SQS cannot tell a message that is hidden by a retry from one that is leased.
func (a attributes) depth() queue.Depth {
	if !a.known {
		return queue.Depth{}
	}
	return queue.Depth{Ready: queue.CountOf(a.ready), Delayed: queue.CountOf(a.delayed), InFlight: queue.CountOf(a.notVisible)}
}

// share is how much of the in-flight quota is used.
func (a attributes) share() float64 { return float64(a.notVisible) / inFlightQuota }
