package rabbitmq

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/caisson-go/caisson/queue"
)

// Headers of the driver. They say what was spent before this copy of a message was made, and never reach [queue.Message].
const (
	headerAttempts   = "caisson-attempts"
	headerDeliveries = "caisson-deliveries"
	headerDue        = "caisson-due" // unix ms, for delays of several steps
	// headerEscape precedes the names of a producer's headers that mean something to the broker or the driver.
	headerEscape = "caisson-escaped-"
)

const (
	brokerDeliveries = "x-delivery-count"
	brokerAcquired   = "x-acquired-count"
)

// brokerHeader reports whether the broker writes headers of that name. A copy that carried them on would be taken for a loop of
// dead-lettering by the broker and dropped, after it was confirmed.
func brokerHeader(name string) bool {
	if len(name) < 2 || name[0] != 'x' || name[1] != '-' {
		return false
	}
	switch name {
	case "x-death", brokerDeliveries, brokerAcquired:
		return true
	}
	return strings.HasPrefix(name, "x-first-death-") || strings.HasPrefix(name, "x-last-death-")
}

// moved returns why the broker dead-lettered a message of the queue whose dead-letter queue is name; "" if it came there in another way. The
// broker lists the last death first.
func (t *topology) moved(name string, headers amqp.Table) string {
	if !queue.IsDLQ(name) {
		return ""
	}
	deaths, _ := headers["x-death"].([]any)
	if len(deaths) == 0 {
		return ""
	}
	last, _ := deaths[0].(amqp.Table)
	from, _ := last["queue"].(string)
	reason, _ := last["reason"].(string)
	if queue.DLQ(from) != t.queue(name) {
		return ""
	}
	return reason
}

// routingHeader reports whether the broker would route a copy to further queues for it.
func routingHeader(name string) bool { return name == "CC" || name == "BCC" }

func driverHeader(name string) bool {
	switch name {
	case headerAttempts, headerDeliveries, headerDue:
		return true
	}
	return false
}

// reserved names are escaped when a producer uses them for headers of its own.
func reserved(name string) bool {
	return strings.HasPrefix(name, headerEscape) || driverHeader(name) || brokerHeader(name) || routingHeader(name)
}

// encodeHeaders makes the headers of a new message.
func encodeHeaders(headers map[string]string) amqp.Table {
	if len(headers) == 0 {
		return nil
	}
	table := make(amqp.Table, len(headers)+1)
	for name, value := range headers {
		if reserved(name) {
			name = headerEscape + name
		}
		table[name] = value
	}
	return table
}

// decodeHeaders returns the headers as text. Those of the broker and the driver are left out.
func decodeHeaders(table amqp.Table) map[string]string {
	if len(table) == 0 {
		return nil
	}
	headers := make(map[string]string, len(table))
	for name, value := range table {
		if driverHeader(name) || brokerHeader(name) {
			continue
		}
		headers[strings.TrimPrefix(name, headerEscape)] = headerText(value)
	}
	return headers
}

// headerText writes a header of any AMQP type as text.
func headerText(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	case bool:
		return strconv.FormatBool(v)
	case time.Time:
		return v.UTC().Format(time.RFC3339)
	case nil:
		return ""
	case amqp.Decimal:
		return decimalText(v)
	case amqp.Table, []any:
		text, err := json.Marshal(plain(v))
		if err != nil {
			return fmt.Sprint(v)
		}
		return string(text)
	}
	return fmt.Sprint(value) // numbers
}

// decimalText writes a decimal without rounding.
func decimalText(d amqp.Decimal) string {
	digits, sign := strconv.FormatInt(int64(d.Value), 10), ""
	if d.Value < 0 {
		digits, sign = digits[1:], "-"
	}
	if d.Scale == 0 {
		return sign + digits
	}
	if missing := int(d.Scale) + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	point := len(digits) - int(d.Scale)
	return sign + digits[:point] + "." + digits[point:]
}

// plain turns a value into what JSON can write.
func plain(value any) any {
	switch v := value.(type) {
	case amqp.Table:
		object := make(map[string]any, len(v))
		for name, field := range v {
			object[name] = plain(field)
		}
		return object
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = plain(item)
		}
		return list
	case float32:
		return plain(float64(v))
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Sprint(v)
		}
		return v
	case amqp.Decimal:
		return decimalText(v)
	case time.Time, []byte:
		return headerText(v)
	}
	return value
}

// headerCount reads a count that may have come in any integer type or as text. What is no count, or a negative one, is 0.
func headerCount(table amqp.Table, name string) int {
	n := headerInt(table, name)
	return int(min(max(n, 0), math.MaxInt32))
}

func headerInt(table amqp.Table, name string) int64 {
	switch v := table[name].(type) {
	case int64:
		return v
	case int32:
		return int64(v)
	case int16:
		return int64(v)
	case int8:
		return int64(v)
	case int:
		return int64(v)
	case uint8:
		return int64(v)
	case uint16:
		return int64(v)
	case uint32:
		return int64(v)
	case uint64:
		return int64(min(v, math.MaxInt64))
	case string:
		return textInt(v)
	case []byte:
		return textInt(string(v))
	}
	return 0
}

func textInt(text string) int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// counts is what was spent on a message so far.
type counts struct{ attempts, deliveries int }

// countsOf returns the counts with the delivery at hand included. The broker writes its own count at a redelivery only: on a first delivery it
// is a leftover of another queue, carried on by whoever moved the message here (a shovel, the management pages).
func countsOf(d *amqp.Delivery) counts {
	again := 0
	if d.Redelivered {
		again = headerCount(d.Headers, brokerDeliveries)
	}
	return counts{
		attempts:   headerCount(d.Headers, headerAttempts) + again + 1,
		deliveries: headerCount(d.Headers, headerDeliveries) + again + 1,
	}
}

// copyOf makes the message that replaces d: the same bytes, properties and headers in their own types, without what must not go twice
// through the broker. spent is what was spent before the copy.
func copyOf(d *amqp.Delivery, spent counts) amqp.Publishing {
	headers := make(amqp.Table, len(d.Headers)+3)
	for name, value := range d.Headers {
		if !driverHeader(name) && !brokerHeader(name) && !routingHeader(name) {
			headers[name] = value
		}
	}
	if spent.attempts > 0 {
		headers[headerAttempts] = int64(spent.attempts)
	}
	if spent.deliveries > 0 {
		headers[headerDeliveries] = int64(spent.deliveries)
	}
	return amqp.Publishing{
		Headers:         headers,
		ContentType:     d.ContentType,
		ContentEncoding: d.ContentEncoding,
		DeliveryMode:    amqp.Persistent,
		Priority:        d.Priority,
		CorrelationId:   d.CorrelationId,
		ReplyTo:         d.ReplyTo,
		MessageId:       d.MessageId,
		Timestamp:       d.Timestamp,
		Type:            d.Type,
		AppId:           d.AppId,
		Body:            d.Body,
		// Expiration would cut delays short, and the broker refuses a UserId that is not the connection's.
	}
}

// tableSize is how many bytes t takes on the wire, or an error if the wire cannot carry it.
func tableSize(t amqp.Table) (int, error) {
	size := 4
	for name, value := range t {
		if len(name) > maxShortText {
			return 0, fmt.Errorf("header name of %d bytes (%.40q...): AMQP carries at most %d", len(name), name, maxShortText)
		}
		n, err := fieldSize(value)
		if err != nil {
			return 0, err
		}
		size += 1 + len(name) + n
	}
	return size, nil
}

func fieldSize(value any) (int, error) {
	switch v := value.(type) {
	case string:
		return 5 + len(v), nil
	case []byte:
		return 5 + len(v), nil
	case amqp.Table:
		n, err := tableSize(v)
		return 1 + n, err
	case []any:
		size := 5
		for _, item := range v {
			n, err := fieldSize(item)
			if err != nil {
				return 0, err
			}
			size += n
		}
		return size, nil
	}
	return 9, nil // the largest of the fixed sizes
}

// validName reports whether name can be a routing key.
func validName(name string) bool { return len(name) <= maxShortText && utf8.ValidString(name) }

// message is what a worker sees of a delivery.
func message(d *amqp.Delivery) queue.Message {
	return queue.Message{Body: d.Body, Headers: decodeHeaders(d.Headers)}
}
