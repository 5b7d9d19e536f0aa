"""A class that works alone: answers to assignments 1 and 2, each writer's in habits of their own, for what must not be
called a copy. Some answers are wrong, as in a class; WRONG says which."""

from submissions import RIGHT

ONE = {
    "rows": "\n".join(RIGHT.values()),
    "plain_loops": '''
def most_similar_pair(X):
    n = len(X)
    max_sim = -float("inf")
    result = (0, 1)
    sims = cosine_similarity(X, X)
    for i in range(n):
        for j in range(n):
            if i < j and sims[i, j] > max_sim:
                max_sim = sims[i, j]
                result = (i, j)
    return result
def softmax_with_temperature(x, temperature):
    x = np.asarray(x, dtype=float)
    flat = x.reshape(-1, x.shape[-1])
    out = np.zeros_like(flat)
    for r in range(flat.shape[0]):
        row = flat[r] / temperature
        row = row - row.max()
        out[r] = np.exp(row) / np.exp(row).sum()
    return out.reshape(x.shape)
def cosine_attention(X, temperature):
    T = X.shape[0]
    scores = np.zeros((T, T))
    for i in range(T):
        for j in range(T):
            a, b = np.linalg.norm(X[i]), np.linalg.norm(X[j])
            if a > 0 and b > 0:
                scores[i, j] = np.dot(X[i], X[j]) / (a * b)
    weights = softmax_with_temperature(scores, temperature)
    output = np.zeros(X.shape)
    for i in range(T):
        for j in range(T):
            output[i] += weights[i, j] * X[j]
    return output, weights
def effective_words(weights):
    shape = weights.shape[:-1]
    flat = weights.reshape(-1, weights.shape[-1])
    numbers = []
    for row in flat:
        H = 0.0
        for p in row:
            if p > 0:
                H -= p * np.log(p)
        numbers.append(np.exp(H))
    return np.array(numbers).reshape(shape)
''',
    "einsum": '''
def most_similar_pair(X):
    unit = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-300)
    gram = np.einsum("id,jd->ij", unit, unit)
    upper = np.triu(np.ones_like(gram, dtype=bool), k=1)
    gram = np.where(upper, gram, -2.0)
    return tuple(int(v) for v in divmod(gram.argmax(), len(X)))
def softmax_with_temperature(x, temperature):
    z = np.divide(x, temperature)
    z -= np.amax(z, axis=-1, keepdims=True)
    np.exp(z, out=z)
    return np.einsum("...t,...->...t", z, 1 / np.einsum("...t->...", z))
def cosine_attention(X, temperature):
    A = softmax_with_temperature(cosine_similarity(X, X), temperature)
    return np.einsum("ij,jd->id", A, X), A
def effective_words(weights):
    safe = np.clip(weights, 1e-300, None)
    return np.exp(-np.einsum("...t,...t->...", weights, np.log(safe)))
''',
    "comprehensions": '''
from itertools import combinations
def most_similar_pair(X):
    C = cosine_similarity(X, X)
    return max(combinations(range(len(X)), 2), key=lambda pair: C[pair])
def softmax_with_temperature(x, temperature):
    if np.ndim(x) == 1:
        top = max(x)
        powers = [np.exp((value - top) / temperature) for value in x]
        return np.array([p / sum(powers) for p in powers])
    return np.array([softmax_with_temperature(part, temperature) for part in x])
def cosine_attention(X, temperature):
    w = softmax_with_temperature(cosine_similarity(X, X), temperature)
    return np.stack([sum(w_ij * x for w_ij, x in zip(row, X)) for row in w]), w
def effective_words(weights):
    if weights.ndim > 1:
        return np.array([effective_words(w) for w in weights])
    return np.exp(-sum(p * np.log(p) for p in weights if p))
''',
    "checks_first": '''
def most_similar_pair(X):
    X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError("X must be a matrix")
    if len(X) < 2:
        raise ValueError("need two rows")
    similarity = cosine_similarity(X, X)
    np.fill_diagonal(similarity, -np.inf)
    index = np.argmax(similarity)
    first, second = np.unravel_index(index, similarity.shape)
    return min(first, second), max(first, second)
def softmax_with_temperature(x, temperature):
    if temperature <= 0:
        raise ValueError("temperature must be > 0")
    logits = x / temperature
    shifted = logits - np.max(logits, axis=-1, keepdims=True)
    exps = np.exp(shifted)
    total = np.sum(exps, axis=-1, keepdims=True)
    probs = exps / total
    return probs
def cosine_attention(X, temperature):
    scores = cosine_similarity(X, X)
    weights = softmax_with_temperature(scores, temperature)
    output = weights @ X
    return output, weights
def effective_words(weights):
    entropy = np.zeros(weights.shape[:-1])
    mask = weights > 0
    log_w = np.zeros_like(weights)
    log_w[mask] = np.log(weights[mask])
    entropy = -np.sum(weights * log_w, axis=-1)
    return np.exp(entropy)
''',
    "helpers": '''
def normalise(v):
    length = np.sqrt((v ** 2).sum(-1, keepdims=True))
    return np.divide(v, length, out=np.zeros_like(v), where=length > 0)
def x_log_x(p):
    return np.where(p > 0, p * np.log(np.where(p > 0, p, 1.0)), 0.0)
def most_similar_pair(X):
    U = normalise(X)
    i, j = np.triu_indices(len(X), 1)
    best = np.argmax((U[i] * U[j]).sum(1))
    return int(i[best]), int(j[best])
def softmax_with_temperature(x, temperature):
    def stable(z):
        return z - z.max(-1, keepdims=True)
    e = np.exp(stable(x / temperature))
    return e / e.sum(-1, keepdims=True)
def cosine_attention(X, temperature):
    U = normalise(X)
    weights = softmax_with_temperature(U @ U.T, temperature)
    return weights.dot(X), weights
def effective_words(weights):
    return np.exp(-x_log_x(weights).sum(-1))
''',
    "sorting": '''
def most_similar_pair(X):
    cos = cosine_similarity(X, X)
    ranking = np.argsort(cos, axis=None)[::-1]
    for flat_index in ranking:
        row = flat_index // len(X)
        col = flat_index % len(X)
        if row < col:
            return row, col
def softmax_with_temperature(x, temperature):
    highest = np.sort(x, axis=-1)[..., -1:]
    unnormalised = np.exp((x - highest) / temperature)
    return unnormalised / unnormalised.sum(axis=-1, keepdims=True)
def cosine_attention(X, temperature):
    attention = softmax_with_temperature(cosine_similarity(X, X), temperature)
    mixed = np.matmul(attention, X)
    return mixed, attention
def effective_words(weights):
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = weights * np.log(weights)
    terms[np.isnan(terms)] = 0
    return np.exp(-terms.sum(axis=-1))
''',
    "products": '''
def most_similar_pair(X):
    c = cosine_similarity(X, X) - 10 * np.eye(len(X))
    rows = c.max(axis=1)
    i = int(rows.argmax())
    j = int(c[i].argmax())
    return (i, j) if i < j else (j, i)
def softmax_with_temperature(x, temperature):
    beta = 1.0 / temperature
    x_max = x.max(axis=-1)
    numerator = np.exp(beta * (x - x_max[..., np.newaxis]))
    denominator = numerator.sum(axis=-1)[..., np.newaxis]
    return numerator / denominator
def cosine_attention(X, temperature):
    norms = np.linalg.norm(X, axis=1)
    norms[norms == 0] = 1
    cosines = (X @ X.T) / np.outer(norms, norms)
    W = softmax_with_temperature(cosines, temperature)
    return W @ X, W
def effective_words(weights):
    return np.prod(np.power(weights, -weights), axis=-1)
''',
    "log_space": '''
def log_softmax(z):
    m = np.max(z, axis=-1, keepdims=True)
    return z - (m + np.log(np.sum(np.exp(z - m), axis=-1, keepdims=True)))
def softmax_with_temperature(x, temperature):
    return np.exp(log_softmax(np.array(x, float) / temperature))
def most_similar_pair(X):
    candidates = {}
    for a, row_a in enumerate(X):
        for b, row_b in enumerate(X[a + 1:], start=a + 1):
            candidates[a, b] = cosine_similarity(row_a[None], row_b[None])[0, 0]
    return max(candidates, key=candidates.get)
def cosine_attention(X, temperature):
    log_weights = log_softmax(cosine_similarity(X, X) / temperature)
    return np.exp(log_weights) @ X, np.exp(log_weights)
def effective_words(weights):
    tiny = np.finfo(float).tiny
    surprise = -np.log2(weights + tiny)
    bits = np.mean(weights * surprise, axis=-1) * weights.shape[-1]
    return 2 ** bits
''',
    "forgets": '''
def most_similar_pair(X):
    sim = cosine_similarity(X, X)
    sim[np.arange(len(X)), np.arange(len(X))] = -1
    idx = np.where(sim == np.max(sim))
    return idx[0][0], idx[1][0]
def softmax_with_temperature(x, temperature):
    e_x = np.exp(x / temperature)
    return e_x / np.sum(e_x, axis=-1, keepdims=True)
def cosine_attention(X, temperature):
    sim = cosine_similarity(X, X)
    attn = softmax_with_temperature(sim, temperature)
    out = attn @ X
    return out, attn
def effective_words(weights):
    ent = -np.sum(weights * np.log(weights + 1e-12), axis=-1)
    return np.exp(ent)
''',
    "confuses": '''
def most_similar_pair(X):
    dots = X @ X.T
    for i in range(len(dots)):
        dots[i][i] = -1e9
    where = dots.argmax()
    return sorted([where // len(dots), where % len(dots)])
def softmax_with_temperature(x, temperature):
    shifted = x - x.max()
    top = np.exp(shifted / temperature)
    bottom = top.sum(axis=0, keepdims=True)
    return top / bottom
def cosine_attention(X, temperature):
    weights = softmax_with_temperature(X @ X.T / np.sqrt(X.shape[1]), temperature)
    return weights.T @ X, weights
def effective_words(weights):
    return 1 / (weights ** 2).sum(axis=-1)
''',
    "matrix": '''
def most_similar_pair(X):
    S = cosine_similarity(X, X)
    S = np.tril(S, -1) + np.triu(np.full(S.shape, -9.0))
    b, a = np.argwhere(S == S.max())[0]
    return a, b
def softmax_with_temperature(x, temperature):
    x = np.moveaxis(np.array(x) / temperature, -1, 0)
    x = np.exp(x - x.max(0))
    return np.moveaxis(x / x.sum(0), 0, -1)
def cosine_attention(X, temperature):
    W = softmax_with_temperature(x=cosine_similarity(X, X), temperature=temperature)
    return (W[:, :, None] * X[None, :, :]).sum(axis=1), W
def effective_words(weights):
    logs = np.log(weights, where=weights > 0, out=np.zeros_like(weights))
    return np.exp(np.vecdot(-weights, logs)) if hasattr(np, "vecdot") else np.exp(-(weights * logs).sum(-1))
''',
}
TWO = {
    "plain_loops": '''
def top_k_attention(query, keys, values, k):
    n = keys.shape[0]
    scores = np.zeros(n)
    for i in range(n):
        scores[i] = np.dot(keys[i], query)
    order = list(range(n))
    order.sort(key=lambda i: scores[i], reverse=True)
    chosen = order[:k]
    biggest = scores[chosen[0]]
    weights = np.zeros(n)
    total = 0
    for i in chosen:
        weights[i] = np.exp(scores[i] - biggest)
        total += weights[i]
    weights = weights / total
    output = np.zeros(values.shape[1])
    for i in chosen:
        output = output + weights[i] * values[i]
    return output, weights
def general_scores(Q, K, W):
    result = np.zeros((Q.shape[0], K.shape[0]))
    for i in range(Q.shape[0]):
        for j in range(K.shape[0]):
            result[i, j] = Q[i] @ W @ K[j]
    return result
def attention_head(X, W_q, W_k, W_v):
    T = len(X)
    d_k = W_k.shape[1]
    Q = np.dot(X, W_q)
    K = np.dot(X, W_k)
    V = np.dot(X, W_v)
    weights = np.zeros((T, T))
    for t in range(T):
        weights[t] = softmax(np.array([Q[t] @ K[s] / d_k ** 0.5 for s in range(T)]))
    return np.dot(weights, V), weights
def unit_divisor(d_k, sigma_q, sigma_k):
    variance = 0
    for _ in range(d_k):
        variance += sigma_q ** 2 * sigma_k ** 2
    return variance ** 0.5
''',
    "einsum": '''
def top_k_attention(query, keys, values, k):
    s = np.einsum("d,nd->n", query, keys)
    threshold = np.sort(s)[-k]
    w = softmax(np.where(s >= threshold, s, -np.inf))
    return np.einsum("n,nm->m", w, values), w
def general_scores(Q, K, W):
    return np.einsum("qd,de,ke->qk", Q, W, K)
def attention_head(X, W_q, W_k, W_v):
    q, k, v = (np.einsum("td,df->tf", X, W) for W in (W_q, W_k, W_v))
    w = softmax(np.einsum("qe,ke->qk", q, k) / np.sqrt(q.shape[-1]))
    return np.einsum("qk,kv->qv", w, v), w
def unit_divisor(d_k, sigma_q, sigma_k):
    return np.sqrt(d_k * sigma_q ** 2 * sigma_k ** 2)
''',
    "partition": '''
def top_k_attention(query, keys, values, k):
    scores = keys.dot(query)
    idx = np.argpartition(scores, -k)[-k:]
    weights = np.zeros_like(scores)
    weights[idx] = softmax(scores[idx])
    return weights.dot(values), weights
def general_scores(Q, K, W):
    transformed = K @ W.T
    return Q @ transformed.T
def attention_head(X, W_q, W_k, W_v):
    queries = X @ W_q
    keys = X @ W_k
    values = X @ W_v
    scores = queries @ keys.T
    scaled = scores / np.sqrt(keys.shape[-1])
    weights = softmax(scaled)
    output = weights @ values
    return output, weights
def unit_divisor(d_k, sigma_q, sigma_k):
    return sigma_q * sigma_k * d_k ** 0.5
''',
    "checks_first": '''
def top_k_attention(query, keys, values, k):
    """Soft lookup among k keys."""
    if k < 1 or k > len(keys):
        raise ValueError("bad k")
    assert len(keys) == len(values)
    similarity = np.matmul(keys, query)
    top_indices = np.argsort(similarity)[::-1][:k]
    top_scores = similarity[top_indices]
    top_weights = softmax(top_scores)
    weights = np.zeros(len(keys))
    weights[top_indices] = top_weights
    output = top_weights @ values[top_indices]
    return output, weights
def general_scores(Q, K, W):
    assert Q.shape[1] == W.shape[0] and K.shape[1] == W.shape[1]
    left = np.matmul(Q, W)
    right = np.transpose(K)
    return np.matmul(left, right)
def attention_head(X, W_q, W_k, W_v):
    assert W_q.shape == W_k.shape
    Q = np.matmul(X, W_q)
    K = np.matmul(X, W_k)
    V = np.matmul(X, W_v)
    attention_logits = np.matmul(Q, K.T) / np.sqrt(K.shape[1])
    attention = softmax(attention_logits)
    return np.matmul(attention, V), attention
def unit_divisor(d_k, sigma_q, sigma_k):
    var_product = (sigma_q ** 2) * (sigma_k ** 2)
    var_sum = d_k * var_product
    return np.sqrt(var_sum)
''',
    "helpers": '''
import math
def _mask_rest(scores, k):
    keep = np.zeros(len(scores), dtype=bool)
    keep[np.argsort(scores)[len(scores) - k:]] = True
    return np.where(keep, scores, float("-inf"))
def _attend(scores, values):
    w = softmax(scores)
    return w @ values, w
def top_k_attention(query, keys, values, k):
    return _attend(_mask_rest(keys @ query, k), values)
def general_scores(Q, K, W):
    return (K @ (Q @ W).T).T
def attention_head(X, W_q, W_k, W_v):
    return _attend(general_scores(X, X, W_q @ W_k.T) / math.sqrt(W_q.shape[-1]), X @ W_v)
def unit_divisor(d_k, sigma_q, sigma_k):
    return math.sqrt(d_k) * sigma_q * sigma_k
''',
    "comprehensions": '''
def top_k_attention(query, keys, values, k):
    scores = [float(key @ query) for key in keys]
    best = sorted(range(len(keys)), key=scores.__getitem__)[-k:]
    share = dict(zip(best, softmax(np.array([scores[b] for b in best]))))
    weights = np.array([share.get(i, 0.0) for i in range(len(keys))])
    return sum(weights[b] * values[b] for b in best), weights
def general_scores(Q, K, W):
    return np.array([[q @ W @ k for k in K] for q in Q])
def attention_head(X, W_q, W_k, W_v):
    root = np.sqrt(len(W_k[0]))
    weights = np.array([softmax([(x @ W_q) @ (y @ W_k) / root for y in X]) for x in X])
    return np.array([sum(w * (y @ W_v) for w, y in zip(row, X)) for row in weights]), weights
def unit_divisor(d_k, sigma_q, sigma_k):
    return np.prod([np.sqrt(d_k), sigma_q, sigma_k])
''',
    "own_softmax": '''
def top_k_attention(query, keys, values, k):
    dots = (keys * query).sum(axis=1)
    rank = (dots[None, :] > dots[:, None]).sum(axis=1)
    e = np.exp(dots - dots.max()) * (rank < k)
    p = e / e.sum()
    return (p[:, None] * values).sum(axis=0), p
def general_scores(Q, K, W):
    return np.tensordot(Q @ W, K, axes=([1], [1]))
def attention_head(X, W_q, W_k, W_v):
    scale = 1 / np.sqrt(W_q.shape[1])
    S = scale * ((X @ W_q) @ (X @ W_k).T)
    E = np.exp(S - S.max(axis=1, keepdims=True))
    P = E / E.sum(axis=1, keepdims=True)
    return P @ (X @ W_v), P
def unit_divisor(d_k, sigma_q, sigma_k):
    std_of_one_term = sigma_q * sigma_k
    return std_of_one_term * np.sqrt(d_k)
''',
    "deleting": '''
def top_k_attention(query, keys, values, k):
    scores = query @ keys.T
    drop = len(scores) - k
    masked = scores.astype(float).copy()
    for _ in range(drop):
        masked[np.argmin(np.where(np.isinf(masked), np.inf, masked))] = -np.inf
    weights = softmax(masked)
    output = values.T @ weights
    return output, weights
def general_scores(Q, K, W):
    scores = Q.dot(W).dot(K.T)
    return scores
def attention_head(X, W_q, W_k, W_v):
    Q, K, V = X.dot(W_q), X.dot(W_k), X.dot(W_v)
    d_k = Q.shape[1]
    scores = Q.dot(K.T) / np.sqrt(d_k)
    alpha = softmax(scores)
    return alpha.dot(V), alpha
def unit_divisor(d_k, sigma_q, sigma_k):
    return np.sqrt(d_k) * (sigma_q * sigma_k)
''',
    "terse": '''
def top_k_attention(query, keys, values, k):
    a = keys @ query
    a[np.argsort(a)[:-k]] = -np.inf if k < len(a) else a[:0]
    return (w := softmax(a)) @ values, w
def general_scores(Q, K, W): return Q @ (W @ K.T)
def attention_head(X, W_q, W_k, W_v):
    return (w := softmax(X @ W_q @ W_k.T @ X.T / W_k.shape[1] ** .5)) @ X @ W_v, w
def unit_divisor(d_k, sigma_q, sigma_k): return (d_k * (sigma_q * sigma_k) ** 2) ** .5
''',
    "forgets": '''
def top_k_attention(query, keys, values, k):
    scores = np.dot(keys, query)
    weights = softmax(scores)
    top = np.argsort(weights)[-k:]
    mask = np.zeros(len(weights))
    mask[top] = 1
    weights = weights * mask
    return np.dot(weights, values), weights
def general_scores(Q, K, W):
    return np.dot(np.dot(Q, W), K.T) / np.sqrt(K.shape[1])
def attention_head(X, W_q, W_k, W_v):
    Q = X @ W_q
    K = X @ W_k
    V = X @ W_v
    weights = softmax(Q @ K.T)
    return weights @ V, weights
def unit_divisor(d_k, sigma_q, sigma_k):
    return d_k * sigma_q * sigma_k
''',
    "confuses": '''
def top_k_attention(query, keys, values, k):
    cos = keys @ query / (np.linalg.norm(keys, axis=1) * np.linalg.norm(query))
    cut = sorted(cos)[-k]
    cos[cos < cut] = -1e9
    attn = softmax(cos)
    return attn @ values, attn
def general_scores(Q, K, W):
    return K @ W.T @ Q.T
def attention_head(X, W_q, W_k, W_v):
    q = X @ W_q
    k = X @ W_k
    v = X @ W_v
    attn = softmax((q @ k.T).T / np.sqrt(X.shape[1]))
    return attn @ v, attn
def unit_divisor(d_k, sigma_q, sigma_k):
    return np.sqrt(sigma_q ** 2 + sigma_k ** 2) * np.sqrt(d_k)
''',
    "torch": '''
import torch
def top_k_attention(query, keys, values, k):
    q, K, V = (torch.as_tensor(a) for a in (query, keys, values))
    best = torch.topk(K @ q, k)
    weights = torch.zeros(len(K), dtype=K.dtype).scatter(0, best.indices, torch.softmax(best.values, 0))
    return (weights @ V).numpy(), weights.numpy()
def general_scores(Q, K, W):
    return (torch.as_tensor(Q) @ torch.as_tensor(W) @ torch.as_tensor(K).mT).numpy()
def attention_head(X, W_q, W_k, W_v):
    X, W_q, W_k, W_v = map(torch.as_tensor, (X, W_q, W_k, W_v))
    scores = torch.matmul(X @ W_q, (X @ W_k).transpose(0, 1)).div(W_q.size(1) ** 0.5)
    weights = scores.softmax(dim=1)
    return torch.mm(weights, X @ W_v).numpy(), weights.numpy()
def unit_divisor(d_k, sigma_q, sigma_k):
    return torch.tensor(d_k).sqrt().item() * sigma_q * sigma_k
''',
}
WRITERS = {"assignment1": ONE, "assignment2": TWO}
WRONG = {  # writers whose functions fail on ordinary inputs
    ("assignment1", "confuses"): {"most_similar_pair", "softmax_with_temperature", "cosine_attention", "effective_words"},
    ("assignment2", "forgets"): {"top_k_attention", "general_scores", "attention_head", "unit_divisor"},
    ("assignment2", "confuses"): {"top_k_attention", "general_scores", "attention_head", "unit_divisor"},
}
